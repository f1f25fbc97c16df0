// Which device a booking formula is asked for.
#pragma once

#include "ir/op.h"

namespace headroom {

inline bool on_cuda(const DeviceFacts& facts) { return !facts.is_cpu(); }

}  // namespace headroom
