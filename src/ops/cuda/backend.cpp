// The planning half of the CUDA backend.
#include "ops/cuda/backend.h"

#include "ops/backend.h"
#include "ops/cuda/capabilities.h"

namespace headroom {

void register_all_cuda_scratch(ScratchRules& rules);  // generated

namespace {

constexpr int64_t kMostCapability = 10000;

class CudaBackend final : public Backend {
 public:
  CudaBackend() { register_all_cuda_scratch(scratch_); }
  std::string_view name() const override { return "cuda"; }
  int64_t alignment() const override { return 256; }
  const ScratchRules& scratch() const override { return scratch_; }

  std::optional<Capabilities> capabilities_named(std::string_view name) const override {
    int number = 0;  // of the digits without the point, which is before the last
    for (const char c : name)
      if (c >= '0' && c <= '9' && number <= kMostCapability) number = 10 * number + (c - '0');
    return compute_capability_name(number) == name ? capabilities_numbered(number) : std::nullopt;
  }
  std::optional<Capabilities> capabilities_numbered(int64_t number) const override {
    if (number > kMostCapability) return std::nullopt;
    return number == 0 ? Capabilities() : of_compute_capability(static_cast<int>(number));
  }
  std::string capabilities_name(const Capabilities& capabilities) const override {
    return compute_capability_name(capabilities.version(kComputeCapability));
  }
  std::string_view known_names() const override { return "a compute capability, such as 9.0"; }
  std::string describe(const Capabilities& capabilities) const override {
    return "compute capability " + capabilities_name(capabilities);
  }

  int64_t window_bytes() const override { return kCudaWindowBytes; }
  int64_t graph_bytes() const override { return kCudaGraphBytes; }

 private:
  ScratchRules scratch_;
};

}  // namespace

void register_cuda_backend(Backends& backends);
void register_cuda_backend(Backends& backends) { backends.add(std::make_unique<CudaBackend>()); }

}  // namespace headroom
