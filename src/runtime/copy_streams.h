// Copies between tiers beside the kernels: stream 0 computes, one stream copies into the device's arena, one out of it.
#pragma once

#include <cstdint>
#include <map>

#include "device/device.h"

namespace headroom {

// A copy starts when all that stream 0 was given before it is done: its source is written by then, and nobody needs the
// bytes it overwrites. Its event then tells stream 0 when its source may be overwritten and its result read. Between
// the two, the plan keeps both places free of anything else. Streams are created at the first event_of().
class CopyStreams {
 public:
  explicit CopyStreams(Device& device) : device_(device) {}

  // The event of copies whose token has this place: tokens that are alive at once have different places. Creates it
  // when it is new; not for use in a step.
  EventId event_of(int64_t token_offset);

  // Queues the copy of `bytes` into tier `to_tier` and records `done` after it.
  void start(std::byte* to, const std::byte* from, int64_t bytes, Tier to_tier, EventId done);
  // Stream 0 waits for the copy that recorded `done` last.
  void wait(EventId done) { device_.wait(0, done); }
  // Returns when no copy is in flight.
  void synchronize();

 private:
  struct Direction {
    StreamId stream = 0;
    EventId issued = 0;  // what stream 0 had been given when the copy was started
  };
  Direction make_direction() { return {device_.create_stream(), device_.create_event()}; }

  Device& device_;
  bool created_ = false;
  Direction in_, out_;
  std::map<int64_t, EventId> events_;  // by the token's offset
};

}  // namespace headroom
