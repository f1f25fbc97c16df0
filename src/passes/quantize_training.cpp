#include "passes/quantize_training.h"

#include "base/error.h"
#include "ops/stream/row_codes.h"
#include "passes/quantize_weights.h"

namespace headroom {

int64_t quantize_training(Graph& graph, RegionId region) {
  int64_t count = 0;
  for (const NodeId id : quantizable_layers(graph, region)) {
    Value& value = graph.value(operand(graph.node(id), "weight"));
    if (!value.type.storage.dense()) continue;
    const int64_t columns = value.type.shape.back().constant;
    if (columns % 4 != 0)
      throw Error(
          ErrorKind::usage,
          fmt::format("--technique quantize-training=int8: the rows of {} have {} elements, not a multiple of 4",
                      value.name, columns),
          "--precision bf16-true halves the weights whatever their rows");
    value.type.storage = int8_rows_of(columns);
    ++count;
  }
  return count;
}

}  // namespace headroom
