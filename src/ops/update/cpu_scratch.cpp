// Scratch of the CPU kernels: for a weight in 8-bit codes, a row in f32 for each thread.
#include "ops/backend.h"
#include "ops/stream/row_codes.h"
#include "ops/update/table.h"

namespace headroom {

void register_update_cpu_scratch(ScratchRules& rules) {
  for (const UpdateRow& row : update_rows())
    rules.add(row.name, [](const OpCall& call, const DeviceFacts& facts) -> int64_t {
      const ConcreteType& weight = call.inputs[UpdateOpInputs::weight];
      return weight.storage.dense() ? 0 : facts.threads * int8_row_bytes(weight.dims[1]);
    });
}

}  // namespace headroom
