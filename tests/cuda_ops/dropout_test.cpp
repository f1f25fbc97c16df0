#include "cuda_ops/in_place.h"
#include "cuda_ops/random.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/random.cuh"
#include "ops/stream/counter_bits.h"

namespace headroom {
namespace {

using namespace op_test;

// Bitwise the same masks, in all trips.
TEST(CudaDropout, DropsWhatTheReferenceDrops) {
  for (DType dtype : kFloats)
    for (double rate : {0.0, 0.1, 0.5, 0.999})
      for (const auto& [count, trip] : std::vector<std::pair<int64_t, int64_t>>{{1, 0}, {1003, 0}, {4100, 3}}) {
        RunOptions options;
        options.trip = trip;
        expect_cuda_matches("dropout", {Tensor::random(dtype, {1, count}, 1), hyper_of(42, 7)},
                            {{"rate", rate}, {"tensor", int64_t{9}}}, {0, 0}, options);
      }
}

// Gradients and activations with other element types than the input.
TEST(CudaDropout, GivesAnotherElementType) {
  for (const auto& [x, y] : {std::pair{DType::f32, DType::bf16}, std::pair{DType::bf16, DType::f32}})
    for (int64_t count : {5, 1003, 4100})
      expect_cuda_matches("dropout", {Tensor::random(x, {1, count}, 1), hyper_of(42, 7)},
                          {{"rate", 0.3}, {"tensor", int64_t{9}}, {"dtype", std::string(dtype_name(y))}}, {0, 0});
}

TEST(CudaDropout, CrossesABlockOfIndices) {
  RunOptions options;
  options.trip = (int64_t{1} << 32) / 1003;
  expect_cuda_matches("dropout", {Tensor::filled(DType::f32, {1, 1003}, 1), hyper_of(42, 7)},
                      {{"rate", 0.5}, {"tensor", int64_t{9}}}, {0, 0}, options);
}

TEST(CudaDropout, WorksInPlace) {
  expect_same_in_place("dropout", {Tensor::random(DType::bf16, {1, 999}, 1), hyper_of(1, 1)},
                       {{"rate", 0.3}, {"tensor", int64_t{4}}});
}

__global__ void draw(const float* hyper, uint64_t tensor, uint64_t first, uint32_t* bits) {
  cuda::BlockKeys keys(cuda::step_key(hyper, tensor));
  bits[threadIdx.x] = keys.bits(first + threadIdx.x);
}

TEST(CudaRandom, TheDeviceDrawsTheHostsBits) {
  const Tensor hyper = hyper_of(0x123456789abcdef0, 0xfffffff0u);
  for (uint64_t first : {uint64_t{0}, (uint64_t{1} << 32) - 10, (uint64_t{1} << 45) + 3}) {
    std::vector<uint32_t> bits(64);
    cuda::launch(draw, cuda::Grid{1, 1, 1, 64, 0}, nullptr, hyper.as<float>(), uint64_t{99}, first, bits.data());
    const uint64_t key = step_key(hyper.as<float>(), 99);
    for (uint64_t i = 0; i < 64; ++i)
      EXPECT_EQ(bits[static_cast<size_t>(i)], counter_bits(block_key(key, first + i), first + i));
  }
}

}  // namespace
}  // namespace headroom
