// The emulation of tensor-core products: fragments of known matrices, and which lane gets what from ldmatrix.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "ops/cuda/launch.cuh"
#include "ops/cuda/mma_product.cuh"

namespace headroom {
namespace {

using namespace cuda;

uint32_t pair_at(const std::vector<float>& matrix, int at, int next) {
  return narrow_pair<Bf16>(matrix[static_cast<size_t>(at)], matrix[static_cast<size_t>(next)]);
}

// c [16][8] += a [16][16] b [16][8], with fragments filled as in the tables of the PTX manual.
__global__ void multiply_once(const std::vector<float>* a, const std::vector<float>* b, std::vector<float>* c) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, g = lane / 4, t = lane % 4;
  uint32_t left[4];
  for (int i = 0; i < 4; ++i) {
    const int at = (g + i % 2 * 8) * 16 + 2 * t + i / 2 * 8;
    left[i] = pair_at(*a, at, at + 1);
  }
  const uint32_t low = pair_at(*b, 2 * t * 8 + g, (2 * t + 1) * 8 + g);
  const uint32_t high = pair_at(*b, (2 * t + 8) * 8 + g, (2 * t + 9) * 8 + g);
  float sums[4];
  for (int i = 0; i < 4; ++i) sums[i] = (*c)[static_cast<size_t>((g + i / 2 * 8) * 8 + 2 * t + i % 2)];
  mma_m16n8k16(sums, left, low, high);
  for (int i = 0; i < 4; ++i) (*c)[static_cast<size_t>((g + i / 2 * 8) * 8 + 2 * t + i % 2)] = sums[i];
}

TEST(CudaMma, MultipliesFragments) {
  std::vector<float> a(256), b(128), c(128), expected(128);
  for (size_t i = 0; i < 256; ++i) a[i] = static_cast<float>(static_cast<int>(i * 37 % 23) - 11);
  for (size_t i = 0; i < 128; ++i) b[i] = static_cast<float>(static_cast<int>(i * 29 % 17) - 8);
  for (size_t i = 0; i < 128; ++i) c[i] = expected[i] = static_cast<float>(i);
  for (size_t row = 0; row < 16; ++row)
    for (size_t column = 0; column < 8; ++column)
      for (size_t step = 0; step < 16; ++step) expected[row * 8 + column] += a[row * 16 + step] * b[step * 8 + column];
  launch(multiply_once, Grid{1, 1, 1, 32, 0}, nullptr, &a, &b, &c);
  EXPECT_EQ(c, expected);
}

// Element e of lane l's register m goes to out[(2 m + e) * 32 + l].
__global__ void load_once(bool transposed, int* out) {
  HR_DYNAMIC_SHARED(Bf16, tile);
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = 0; i < 8; ++i) tile[lane * 8 + i].bits = static_cast<uint16_t>(lane * 8 + i);
  __syncthreads();
  uint32_t m[4];
  if (transposed)
    load_matrices_transposed(m, tile + lane * 8);
  else
    load_matrices(m, tile + lane * 8);
  for (int i = 0; i < 4; ++i) {
    out[2 * i * 32 + lane] = static_cast<int>(m[i] & 0xffff);
    out[(2 * i + 1) * 32 + lane] = static_cast<int>(m[i] >> 16);
  }
}

TEST(CudaMma, LoadsMatricesStraightAndTransposed) {
  for (bool transposed : {false, true}) {
    std::vector<int> out(256, -1);
    launch(load_once, Grid{1, 1, 1, 32, 512}, nullptr, transposed, out.data());
    for (int m = 0; m < 4; ++m)
      for (int element = 0; element < 2; ++element)
        for (int lane = 0; lane < 32; ++lane) {
          const int g = lane / 4, step = lane % 4 * 2 + element;
          const int row = transposed ? step : g, column = transposed ? g : step;
          EXPECT_EQ(out[static_cast<size_t>((2 * m + element) * 32 + lane)], (8 * m + row) * 8 + column);
        }
  }
}

// Eight lines at one column, as read by ldmatrix: no two in the same four banks.
template <int kLength>
void expect_no_conflicts(int lines) {
  std::set<int> places;
  for (int first = 0; first < lines; first += 8)
    for (int column = 0; column < kLength; column += 8) {
      std::set<int> banks;
      for (int line = first; line < first + 8; ++line) {
        const int place = tile_place<kLength>(line, column);
        EXPECT_EQ(place % 8, 0);
        banks.insert(place / 8 % 8);
        places.insert(place);
      }
      EXPECT_EQ(banks.size(), 8u) << kLength << ", line " << first << ", column " << column;
    }
  EXPECT_EQ(places.size(), static_cast<size_t>(lines * kLength / 8));
  EXPECT_EQ(*places.rbegin(), lines * kLength - 8);
}

TEST(CudaMma, LinesOfATileLieInDifferentBanks) {
  expect_no_conflicts<32>(128);
  expect_no_conflicts<64>(32);
  expect_no_conflicts<128>(32);
}

}  // namespace
}  // namespace headroom
