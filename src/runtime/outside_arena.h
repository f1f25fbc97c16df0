// What the process holds of a device's memory beside its arena, held against what the plan books for it.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device.h"

namespace headroom {

class OutsideArena {
 public:
  // The device outlives it.
  explicit OutsideArena(Device& device) : device_(device) {}

  // Notes that `what` (a literal, for messages) took what the process holds now and did not hold at the last call;
  // nothing where the driver does not tell.
  void took(std::string_view what);
  // Throws Error(does_not_fit) with all that took any when the process held more than `booked` bytes at the last call.
  // Where the driver does not tell, nothing is known to be too much.
  void require(int64_t booked) const;

 private:
  Device& device_;
  int64_t held_ = 0;  // at the last call
  std::vector<std::pair<std::string_view, int64_t>> parts_;
};

}  // namespace headroom
