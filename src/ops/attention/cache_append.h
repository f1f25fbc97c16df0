// What the ops that write rows into a KV cache have in common: (rows, cache, places) -> the same cache.
#pragma once

#include <vector>

#include "ir/op.h"

namespace headroom {

// The inputs of `kv_append` and `kv_append_paged`; `places` is the offset of the first row, or the slot of each.
struct CacheAppendInputs {
  enum : int { rows, cache, places };
};

class CacheAppend : public Op {
 public:
  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, CacheAppendInputs::cache, true}}; }
  // The rows are read in their own dtype and written in the cache's.
  Work work(const OpCall& call) const override {
    const double elements = static_cast<double>(element_count(call.inputs[CacheAppendInputs::rows].dims));
    return {0, static_cast<double>(storage_bytes(call.inputs[CacheAppendInputs::rows])) +
                   elements * static_cast<double>(dtype_bytes(call.inputs[CacheAppendInputs::cache].dtype))};
  }
  CostClass cost_class() const override { return CostClass::copy; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
  bool has_effect() const override { return true; }
};

}  // namespace headroom
