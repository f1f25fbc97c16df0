// Whether a server's share of the device should be raised or lowered: two kinds of failure need opposite changes.
#pragma once

#include "doctor/remedies/case_view.h"

namespace headroom::doctor {

enum class KvDirection { keep, raise, lower };

struct KvAdvice {
  KvDirection direction = KvDirection::keep;
  double fraction = 0;           // the value to set
  std::optional<int64_t> bytes;  // moved to or from the KV cache
  std::string why;               // of `keep`: why another share does not help; empty where nothing is known of it
};

// vLLM's gpu_memory_utilization and SGLang's mem_fraction_static limit weights and KV cache. A cache that is too small
// at start needs a larger share (up to 0.95). A failure outside it (warm-up, graph capture, prefill, another process on
// the device) needs a smaller one.
KvAdvice kv_advice(const CaseView& view);

}  // namespace headroom::doctor
