// The paged cache on a device: against the reference, and each row against a call with that row alone.
#include "cuda_shim/cuda_harness.h"
#include "ops/paged_attention/cuda_scratch.h"

namespace headroom::paged_attention_on_cuda {
namespace {

using namespace op_test;

Tensor integers(const std::vector<int64_t>& dims, const std::vector<double>& values) {
  return Tensor(DType::i32, dims, values);
}

struct Pools {
  int64_t heads, kv_heads, dim;
  int64_t window = 0;
  double softcap = 0;
  int64_t block_tokens = 16;

  Attrs attrs() const {
    Attrs attrs{{"heads", heads}, {"kv_heads", kv_heads}, {"window", window}, {"block_tokens", block_tokens}};
    if (softcap > 0) attrs.set("softcap", softcap);
    return attrs;
  }
};

constexpr int64_t kPositions = 288, kSequences = 3;

// Rows of three sequences at several positions, one without an owner and one without a position.
std::vector<Tensor> inputs_of(const Pools& p, DType q, DType kv) {
  const std::vector<double> owners{2, 0, 0, 1, -1, 2, 0}, offsets{287, 0, 127, 128, 7, -1, 130};
  const int64_t rows = static_cast<int64_t>(owners.size()), each = kPositions / p.block_tokens,
                blocks = each * kSequences + 2;
  std::vector<double> tables;
  for (int64_t i = 0; i < each * kSequences; ++i) tables.push_back(static_cast<double>((i * 5 + 3) % blocks));
  const std::vector<int64_t> pool{1, blocks * p.block_tokens, p.kv_heads * p.dim};
  return {Tensor::random(q, {rows, 1, p.heads * p.dim}, 1, 1.5),
          Tensor::random(kv, pool, 2, 1.5),
          Tensor::random(kv, pool, 3),
          integers({kSequences, each}, tables),
          integers({rows}, owners),
          integers({rows}, offsets)};
}

// Row r of every operand that has one per row.
std::vector<Tensor> row_alone(const std::vector<Tensor>& inputs, int64_t r) {
  const int64_t width = inputs[0].type().dims[2];
  std::vector<Tensor> one = inputs;
  one[0] = Tensor(inputs[0].type().dtype, {1, 1, width});
  for (int64_t i = 0; i < width; ++i) one[0].set(i, inputs[0].at(r * width + i));
  for (size_t i : {4, 5}) one[i] = integers({1}, {inputs[i].at(r)});
  return one;
}

std::vector<Pools> pools() {
  return {{4, 4, 16}, {9, 1, 64}, {6, 2, 20, 50}, {8, 2, 128, 130, 20}, {2, 1, 24, 0, 5, 3}, {2, 2, 520}};
}

TEST(CudaPagedAttention, AgreesWithTheReference) {
  for (const Pools& p : pools())
    for (DType q : kFloats)
      for (DType kv : floats_with(q)) {
        SCOPED_TRACE(fmt::format("{} heads of {}, {} and {}", p.heads, p.dim, dtype_name(q), dtype_name(kv)));
        expect_cuda_matches("attention_paged", inputs_of(p, q, kv), p.attrs(),
                            q == DType::f32 ? Tolerance{1e-5, 1e-5} : Tolerance{1e-2, 1e-2});
      }
}

TEST(CudaPagedAttention, ARowDoesNotDependOnItsCompany) {
  for (const Pools& p : pools()) {
    const std::vector<Tensor> inputs = inputs_of(p, DType::f32, DType::bf16);
    const Tensor together = run_cuda_op("attention_paged", inputs, p.attrs()).outputs[0];
    const int64_t width = p.heads * p.dim;
    for (int64_t r = 0; r < inputs[0].type().dims[0]; ++r) {
      const Tensor alone = run_cuda_op("attention_paged", row_alone(inputs, r), p.attrs()).outputs[0];
      for (int64_t i = 0; i < width; ++i) ASSERT_EQ(together.at(r * width + i), alone.at(i)) << r << ", " << i;
    }
  }
}

// Long sequences are computed one row at a time, with scratch for one row.
TEST(CudaPagedAttention, RowsTakeTurnsInTheScratch) {
  PagedShape shape;
  shape.rows = 256, shape.heads = shape.kv_heads = 32, shape.dim = 128;
  shape.tables = 4, shape.block_tokens = 16, shape.table_blocks = 8;
  EXPECT_EQ(cuda_paged_at_once(shape), 256);
  EXPECT_LE(cuda_paged_scratch(shape), kCudaPagedBytes);
  shape.table_blocks = 128;
  EXPECT_EQ(cuda_paged_at_once(shape), 63);
  EXPECT_LE(cuda_paged_scratch(shape), kCudaPagedBytes);
  shape.table_blocks = 65536;
  EXPECT_EQ(cuda_paged_at_once(shape), 1);
  const Pools p{32, 32, 128};
  std::vector<Tensor> inputs = inputs_of(p, DType::f32, DType::f32);
  const int64_t each = 2400;  // of a table: 300 chunks of keys, 4.9 MB of partial results for a row
  std::vector<double> tables(static_cast<size_t>(each * kSequences), 1);
  for (int64_t i = 0; i < kSequences; ++i)
    for (int64_t b = 0; b < 18; ++b) tables[static_cast<size_t>(i * each + b)] = inputs[3].at(i * 18 + b);
  inputs[3] = integers({kSequences, each}, tables);
  expect_cuda_matches("attention_paged", inputs, p.attrs(), {1e-5, 1e-5});
}

TEST(CudaPagedAttention, WhatTablesSayNeverLeadsOutOfThePool) {
  const Pools p{2, 1, 8};
  const Tensor q = Tensor::random(DType::f32, {4, 1, 16}, 1), k = Tensor::random(DType::f32, {1, 32, 8}, 2);
  expect_cuda_matches("attention_paged",
                      {q, k, k, integers({2, 2}, {-5, 900, 1, 2147483647}), integers({4}, {0, 1, 2, -3}),
                       integers({4}, {20, 2147483647, 5, 5})},
                      p.attrs(), {1e-5, 1e-5});
}

TEST(CudaPagedAttention, AppendsRowsToTheirSlots) {
  for (DType k : kFloats)
    for (DType pool : floats_with(k))
      for (int64_t width : {8, 13})
        expect_cuda_matches("kv_append_paged",
                            {Tensor::random(k, {5, 1, width}, 1), Tensor::random(pool, {1, 12, width}, 2),
                             integers({5}, {11, -1, 3, 12, 0})},
                            {}, {0, 0});
}

}  // namespace
}  // namespace headroom::paged_attention_on_cuda
