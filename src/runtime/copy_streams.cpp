#include "runtime/copy_streams.h"

namespace headroom {

EventId CopyStreams::event_of(int64_t token_offset) {
  if (!created_) in_ = make_direction(), out_ = make_direction(), created_ = true;
  const auto [at, added] = events_.try_emplace(token_offset, 0);
  if (added) at->second = device_.create_event();
  return at->second;
}

void CopyStreams::start(std::byte* to, const std::byte* from, int64_t bytes, Tier to_tier, EventId done) {
  const Direction& direction = to_tier == Tier::device ? in_ : out_;
  device_.record(direction.issued, 0);
  device_.wait(direction.stream, direction.issued);
  device_.copy(to, from, bytes, direction.stream);
  device_.record(done, direction.stream);
}

void CopyStreams::synchronize() {
  if (!created_) return;
  device_.synchronize(in_.stream);
  device_.synchronize(out_.stream);
}

}  // namespace headroom
