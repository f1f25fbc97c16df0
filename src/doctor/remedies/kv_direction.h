// Whether a server's share of the device should go up or down: the two failures ask for opposite things.
#pragma once

#include "doctor/remedies/case_view.h"

namespace headroom::doctor {

enum class KvDirection { keep, raise, lower };

struct KvAdvice {
  KvDirection direction = KvDirection::keep;
  double fraction = 0;           // the value to set
  std::optional<int64_t> bytes;  // moved to or from the KV cache
  std::string why;
};

// vLLM's gpu_memory_utilization and SGLang's mem_fraction_static bound weights and KV cache. A cache too small at start
// asks for more (up to 0.95); a failure outside it (warm-up, graph capture, prefill, another process on the device)
// asks for less.
KvAdvice kv_advice(const CaseView& view);

}  // namespace headroom::doctor
