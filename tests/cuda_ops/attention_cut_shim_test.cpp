// The gradient of attention on tensor cores with a Hopper's shared memory per block: other block sizes for the same
// sums.
#include "cuda_shim/cuda_harness.h"
#include "cuda_shim/cuda_shim.h"

namespace headroom {
namespace {

using namespace op_test;

class SharedMemory {
 public:
  explicit SharedMemory(int64_t bytes) { cuda_shim::most_shared = bytes; }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() { cuda_shim::most_shared = cuda_shim::kLeastSharedBytes; }
};

TEST(CudaAttentionCut, LongHeadsHaveTheSameGradientInARoomyOne) {
  const std::vector<int64_t> q{1, 140, 2 * 128}, k{1, 140, 128};
  const std::vector<Tensor> inputs{Tensor::random(DType::bf16, q, 1),          Tensor::random(DType::bf16, k, 2),
                                   Tensor::random(DType::bf16, k, 3),          Tensor::random(DType::bf16, q, 4),
                                   Tensor::random(DType::f32, {1, 2, 140}, 5), Tensor::random(DType::bf16, q, 6)};
  const Attrs causal{{"heads", int64_t{2}}, {"kv_heads", int64_t{1}}, {"causal", int64_t{1}}, {"window", int64_t{0}}};
  const Attrs whole{{"heads", int64_t{2}}, {"kv_heads", int64_t{1}}, {"causal", int64_t{0}}, {"window", int64_t{0}}};
  Attrs capped = causal;
  capped.set("softcap", 2.0);
  RunOptions mma;
  mma.only = "mma";
  for (const Attrs& attrs : {causal, whole, capped}) {
    const RunResult tight = run_cuda_op("attention_grad", inputs, attrs, mma);
    const SharedMemory of_hopper(227 << 10);
    const RunResult roomy = run_cuda_op("attention_grad", inputs, attrs, mma);
    for (size_t i = 0; i < tight.outputs.size(); ++i) expect_same_bytes(roomy.outputs[i], tight.outputs[i]);
  }
}

}  // namespace
}  // namespace headroom
