#include "passes/micro_batch.h"

#include "base/error.h"

namespace headroom {

void set_micro_batch(Graph& graph, int64_t sequences) {
  const SymbolId batch = graph.find_symbol("batch");
  HR_CHECK(batch != kNone && sequences >= 1, "a micro-batch of {} sequences", sequences);
  graph.symbols[static_cast<size_t>(batch)].bound = sequences;
}

}  // namespace headroom
