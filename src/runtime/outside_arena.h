// Compares the device memory that the process holds outside its arena with what the plan books for it.
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

  // Notes that `what` (a literal, for messages) took the increase since the last call; does nothing if the driver does
  // not report it.
  void took(std::string_view what);
  // Throws Error(does_not_fit), naming everything that took memory, if the process held more than `booked` bytes at the
  // last call. If the driver does not report it, nothing is checked.
  void require(int64_t booked) const;

 private:
  Device& device_;
  int64_t held_ = 0;  // at the last call
  std::vector<std::pair<std::string_view, int64_t>> parts_;
};

}  // namespace headroom
