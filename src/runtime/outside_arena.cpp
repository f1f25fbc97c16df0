#include "runtime/outside_arena.h"

#include "base/bytes.h"
#include "base/error.h"

namespace headroom {

void OutsideArena::took(std::string_view what) {
  const std::optional<int64_t> now = device_.memory().outside_arena_bytes;
  if (!now) return;
  if (*now != held_) parts_.emplace_back(what, *now - held_);
  held_ = *now;
}

void OutsideArena::require(int64_t booked) const {
  if (held_ <= booked) return;
  std::string parts;
  for (const auto& [what, bytes] : parts_)
    parts += fmt::format("{}{} bytes by {}", parts.empty() ? "" : ", ", bytes, what);
  throw Error(
      ErrorKind::does_not_fit,
      fmt::format("outside the arena this process holds {} bytes ({}) of the device, the plan books {} ({}): {}", held_,
                  format_bytes(held_), booked, format_bytes(booked), parts),
      fmt::format("measure the device with `headroom profile --device cuda:0`, or give a --profile whose "
                  "context_bytes is {} or more",
                  held_));
}

}  // namespace headroom
