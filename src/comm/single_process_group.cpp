#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "comm/process_group.h"

namespace headroom {
namespace {

class SingleProcessGroup final : public ProcessGroup {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_gather(std::span<const std::byte> local, std::span<std::byte> full) override {
    HR_CHECK(local.size() >= full.size(), "one shard of {} bytes of a whole of {}", local.size(), full.size());
    std::memmove(full.data(), local.data(), full.size());
  }
  void reduce_scatter(std::span<const float> full, std::span<float> local) override {
    HR_CHECK(local.size() >= full.size(), "one shard of {} elements of a whole of {}", local.size(), full.size());
    std::memmove(local.data(), full.data(), full.size_bytes());
    std::fill(local.begin() + static_cast<std::ptrdiff_t>(full.size()), local.end(), 0.0f);
  }
  void all_reduce(std::span<float>) override {}
  void all_reduce(std::span<double>) override {}
};

}  // namespace

std::unique_ptr<ProcessGroup> make_single_process_group() { return std::make_unique<SingleProcessGroup>(); }

}  // namespace headroom
