// Copies between tiers that run concurrently with the kernels: stream 0 computes; each tier below the device has one
// stream that copies into the device's arena and one that copies out of it, so no copy queues behind those of a slower
// tier.
#pragma once

#include <cstdint>
#include <map>

#include "device/device.h"

namespace headroom {

// One of these streams.
struct CopyStream {
  StreamId stream = 0;
  EventId issued = 0;  // the work that stream 0 had been given when the newest copy was started
};

// Makes as many streams and events as a plan that copies to every tier has, and some more events, and leaves them to
// the device, to measure the memory that they take of it.
void make_streams_of_any_plan(Device& device);

// A copy starts when everything that stream 0 was given before it is done: its source is written by then, and the bytes
// that it overwrites are no longer needed. Its event then tells stream 0 when its source may be overwritten and its
// result read. Between the two, the plan keeps both ranges free of anything else.
class CopyStreams {
 public:
  explicit CopyStreams(Device& device) : device_(device) {}

  // The stream of copies from one tier to another, of which one is the device's. Creates it if it is new; not for use
  // in a step. The reference stays valid.
  const CopyStream& stream_of(Tier from, Tier to);
  // The event of copies whose token has this offset: tokens that are alive at the same time have different offsets.
  // Creates it if it is new; not for use in a step.
  EventId event_of(int64_t token_offset);

  // Queues the copy of `bytes` on one of these streams and records `done` after it.
  void start(std::byte* to, const std::byte* from, int64_t bytes, const CopyStream& stream, EventId done);
  // Stream 0 waits for the copy that recorded `done` last.
  void wait(EventId done) { device_.wait(0, done); }
  // Returns when no copy is in flight.
  void synchronize();

 private:
  Device& device_;
  std::map<std::pair<Tier, Tier>, CopyStream> streams_;  // by the tiers from and to
  std::map<int64_t, EventId> events_;                    // by the token's offset
};

}  // namespace headroom
