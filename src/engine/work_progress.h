// How far a call is that works piece by piece.
#pragma once

#include <cstdint>
#include <functional>

namespace headroom {

// Called on the calling thread with 0 pieces done, then after each; `total` stays the same. An exception from it ends
// the call, as any other does. May be empty.
using WorkProgress = std::function<void(int64_t done, int64_t total)>;

}  // namespace headroom
