#include <cstring>
#include <iterator>

#include "cuda_shim/cuda_shim.h"
#include "cuda_shim/place.h"
#include "ops/cuda/capabilities.h"

namespace headroom::op_test {
namespace {

constexpr cuda_shim::Order kOrders[] = {cuda_shim::Order::forward, cuda_shim::Order::backward,
                                        cuda_shim::Order::shuffled};

// Host memory instead of the device's: everything happens at once, in three orders of the threads.
class Shim final : public Place {
 public:
  // Small, so that the loops of grids have several iterations.
  CudaContext context() override {
    CudaContext context;
    context.facts.device = "cuda";
    context.facts.capabilities = of_compute_capability(80);
    context.facts.native_bf16 = true;
    context.facts.alignment = 256;
    context.multiprocessors = 2;
    context.shared_bytes = cuda_shim::most_shared;
    return context;
  }
  std::shared_ptr<std::byte> pinned(int64_t bytes) override {
    return {new std::byte[static_cast<size_t>(bytes)], std::default_delete<std::byte[]>()};
  }
  void copy(void* to, const void* from, int64_t bytes, CudaStream) override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void fill(void* at, int value, int64_t bytes, CudaStream) override {
    std::memset(at, value, static_cast<size_t>(bytes));
  }
  void begin_loading() override { cuda_shim::demand_loading(true); }
  int runs() const override { return static_cast<int>(std::size(kOrders)); }
  void begin_run(int run) override { cuda_shim::set_order(kOrders[run]); }
  void end_runs() override {
    cuda_shim::set_order(cuda_shim::Order::forward);
    cuda_shim::demand_loading(false);
  }
  void finish(CudaStream) override {}
};

}  // namespace

Place& place() {
  static Shim shim;
  return shim;
}

}  // namespace headroom::op_test
