// prefetch: how far ahead of their use copies from the host or disk start.
//
// What: the depth of the windows (device_windows.h) that the offload passes open. With depth d, copies for a window
//   start while the d-th window before it is in use, and copies back are waited for d windows later. With depth 0,
//   copies start when they are needed.
// Legal when: always; a copy starts after its source was written.
// Placed here because: it is a parameter of all offload passes, without a pass.
// Saves: nothing; each step of depth takes two more windows. Costs: nothing; it hides copies behind kernels.
// Manuals: M3 (T14): forward_prefetch, backward_prefetch.
#pragma once

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kPrefetch{"prefetch", PassStage::schedule, TechniqueKind::exact,
                                    "start copies from the host or disk this many windows early"};

}  // namespace headroom
