// A host port with the collectives of a process group; everything else is forwarded to another host port.
#pragma once

#include "comm/process_group.h"

namespace headroom {

// `group` and `host` outlive the port. Like the group, not thread-safe.
class CollectivePort final : public HostPort {
 public:
  CollectivePort(ProcessGroup& group, HostPort& host) : group_(group), host_(host) {}

  void next_batch(int64_t trip, std::span<int32_t> ids, std::span<int32_t> labels, int64_t batch,
                  int64_t seq) override {
    host_.next_batch(trip, ids, labels, batch, seq);
  }
  void next_segments(int64_t trip, std::span<int32_t> starts, int64_t batch, int64_t seq) override {
    host_.next_segments(trip, starts, batch, seq);
  }
  void next_types(int64_t trip, std::span<int32_t> types, int64_t batch, int64_t seq) override {
    host_.next_types(trip, types, batch, seq);
  }
  void next_lengths(int64_t trip, std::span<int32_t> lengths, int64_t batch, int64_t seq) override {
    host_.next_lengths(trip, lengths, batch, seq);
  }
  void all_gather(std::span<const std::byte> local, std::span<std::byte> full) override {
    group_.all_gather(local, full);
  }
  void reduce_scatter(std::span<const float> full, std::span<float> local) override {
    group_.reduce_scatter(full, local);
  }
  void all_reduce(std::span<float> values) override { group_.all_reduce(values); }
  void all_reduce_f64(std::span<double> values) override { group_.all_reduce(values); }

 private:
  ProcessGroup& group_;
  HostPort& host_;
};

}  // namespace headroom
