#include "runtime/copy_streams.h"

#include "base/error.h"
#include "ir/tier_bytes.h"

namespace headroom {

void make_streams_of_any_plan(Device& device) {
  // Two for each tier below the device; for the disk also one paired with each of these and one with stream 0.
  constexpr int kStreams = 2 * static_cast<int>(kLowerTiers.size()) + 3;
  constexpr int kEvents = 1024;  // of copies in flight at once, and of entries in the disk's queues
  for (int i = 0; i < kStreams; ++i) device.create_stream(Tier::host);
  for (int i = 0; i < kEvents; ++i) device.create_event();
}

const CopyStream& CopyStreams::stream_of(Tier from, Tier to) {
  HR_CHECK((from == Tier::device) != (to == Tier::device), "a copy has one end in the device's tier");
  const auto [at, added] = streams_.try_emplace({from, to});
  if (added) at->second = {device_.create_stream(from == Tier::device ? to : from), device_.create_event()};
  return at->second;
}

EventId CopyStreams::event_of(int64_t token_offset) {
  const auto [at, added] = events_.try_emplace(token_offset, 0);
  if (added) at->second = device_.create_event();
  return at->second;
}

void CopyStreams::start(std::byte* to, const std::byte* from, int64_t bytes, const CopyStream& stream, EventId done) {
  device_.record(stream.issued, 0);
  device_.wait(stream.stream, stream.issued);
  device_.copy(to, from, bytes, stream.stream);
  device_.record(done, stream.stream);
}

void CopyStreams::synchronize() {
  for (const auto& [tiers, stream] : streams_) device_.synchronize(stream.stream);
}

}  // namespace headroom
