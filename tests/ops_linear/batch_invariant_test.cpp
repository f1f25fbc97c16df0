// Products with the attribute batch_invariant: a row has the same bits as alone, and the sum is right.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "../ops_support/coded_tensor.h"
#include "ops/linear/scratch.h"

namespace headroom::op_test {
namespace {

constexpr int64_t kRows[] = {3, 8, 9, 12, 29, 64, 200};

// Row `row` of x [1, rows, width].
Tensor row_of(const Tensor& x, int64_t row) {
  const int64_t width = x.type().dims.back(), bytes = width * dtype_bytes(x.type().dtype);
  Tensor one(x.type().dtype, {1, 1, width});
  std::memcpy(one.as<std::byte>(), x.as<std::byte>() + row * bytes, static_cast<size_t>(bytes));
  return one;
}

Tensor first_rows(const Tensor& x, int64_t rows) {
  Tensor some(x.type().dtype, {1, rows, x.type().dims.back()});
  std::memcpy(some.as<std::byte>(), x.as<std::byte>(), static_cast<size_t>(some.bytes()));
  return some;
}

RunResult run_rows(std::string_view op, const std::vector<Tensor>& inputs, const Attrs& attrs) {
  RunResult result = run_op(op, inputs, attrs);
  if (host_facts().capabilities.has(kAvx2)) {
    EXPECT_EQ(result.implementation, "rows");
  }
  return result;
}

struct Layer {
  Tensor weight;
  Tensor decoded;  // the same numbers, dense
  bool out_in = true;
  int64_t outs() const { return decoded.type().dims[out_in ? 0 : 1]; }
  int64_t ins() const { return decoded.type().dims[out_in ? 1 : 0]; }
};

// Rows in calls of other sizes have the same bits as alone.
void expect_rows_alone(const Layer& layer, DType x_dtype, DType y_dtype, bool bias, bool residual,
                       std::span<const int64_t> counts = kRows) {
  const int64_t most = counts.back();
  const Tensor x = Tensor::random(x_dtype, {1, most, layer.ins()}, 1),
               added = Tensor::random(y_dtype, {1, most, layer.outs()}, 4);
  const Attrs attrs{{"batch_invariant", int64_t{1}},
                    {"layout", layer.out_in ? "out_in" : "in_out"},
                    {"bias", int64_t{bias}},
                    {"residual", int64_t{residual}},
                    {"dtype", std::string(dtype_name(y_dtype))}};
  const auto call = [&](const Tensor& rows, const Tensor& residuals) {
    std::vector<Tensor> inputs{rows, layer.weight};
    if (bias) inputs.push_back(Tensor::random(DType::f32, {layer.outs()}, 3));
    if (residual) inputs.push_back(residuals);
    return run_rows("linear", inputs, attrs).outputs[0];
  };
  std::vector<Tensor> alone;
  for (int64_t row = 0; row < most; ++row) alone.push_back(call(row_of(x, row), row_of(added, row)));
  for (const int64_t rows : counts) {
    const Tensor found = call(first_rows(x, rows), first_rows(added, rows));
    for (int64_t row = 0; row < rows; ++row)
      ASSERT_TRUE(row_of(found, row).same_bytes(alone[static_cast<size_t>(row)])) << "row " << row << " of " << rows;
  }
}

// One row against sums in double precision.
void expect_right(const Layer& layer, DType x_dtype, bool rounds) {
  const Tensor x = Tensor::random(x_dtype, {1, 9, layer.ins()}, 1);
  const Attrs attrs{{"batch_invariant", int64_t{1}}, {"layout", layer.out_in ? "out_in" : "in_out"}, {"dtype", "f32"}};
  const Tensor found = run_rows("linear", {x, layer.weight}, attrs).outputs[0];
  const Tensor w = rounds ? rounded(layer.decoded, x_dtype) : layer.decoded;
  const double epsilon = std::ldexp(1.0, -23) * std::sqrt(static_cast<double>(layer.ins()) + 16);
  for (int64_t i = 0; i < found.count(); ++i) {
    double sum = 0, size = 1e-30;
    for (int64_t k = 0; k < layer.ins(); ++k) {
      const int64_t out = i % layer.outs();
      const double term = x.at(i / layer.outs() * layer.ins() + k) *
                          w.at(layer.out_in ? out * layer.ins() + k : k * layer.outs() + out);
      sum += term, size += std::abs(term);
    }
    ASSERT_NEAR(found.at(i), sum, epsilon * size) << "element " << i;
  }
}

TEST(BatchInvariant, RowsOfDenseWeights) {
  using enum DType;
  for (const auto& [x, w] : {std::pair{f32, f32}, {bf16, bf16}, {f16, f16}, {bf16, f32}, {f16, f32}})
    for (const bool out_in : {true, false})
      for (const auto& [ins, outs] : {std::pair<int64_t, int64_t>{70, 37}, {5, 3}, {320, 200}}) {
        SCOPED_TRACE(fmt::format("{} x, {} w, out_in {}, {} -> {}", dtype_name(x), dtype_name(w), out_in, ins, outs));
        const Tensor weight = Tensor::random(w, {out_in ? outs : ins, out_in ? ins : outs}, 2, 0.3);
        const Layer layer{weight, weight, out_in};
        for (const bool ending : {false, true}) expect_rows_alone(layer, x, x, ending, !ending);
        expect_rows_alone(layer, x, f32, true, true);
        expect_right(layer, x, w != x);
      }
}

// Rows so long that x is arranged in several parts, of which the last has a few rows or most of a block.
TEST(BatchInvariant, LongRowsInParts) {
  constexpr int64_t kCounts[] = {16, 35, 45, 101};
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const Tensor weight = Tensor::random(dtype, {49, 8192}, 2, 0.1);
    expect_rows_alone({weight, weight, true}, dtype, dtype, true, true, kCounts);
  }
  const Coded codes = coded(Tensor::random(DType::f32, {49, 8192}, 2, 0.1), kInt4);
  expect_rows_alone({codes.codes, codes.decoded, true}, DType::bf16, DType::f32, true, true, kCounts);
}

// More rows than tiles keep the sums of, over several slices of the depth, the last of which is short.
TEST(BatchInvariant, ManyRowsInSlices) {
  constexpr int64_t kCounts[] = {33, 64, 81, 289, 300};
  for (const int64_t ins : {64, 352, 672, 832})
    for (const DType y : {DType::bf16, DType::f32}) {
      SCOPED_TRACE(fmt::format("{} elements, y {}", ins, dtype_name(y)));
      const Tensor weight = Tensor::random(DType::bf16, {85, ins}, 2, 0.1);
      expect_rows_alone({weight, weight, true}, DType::bf16, y, true, true, kCounts);
      const Coded codes = coded(Tensor::random(DType::f32, {85, ins}, 2, 0.1), kInt4);
      expect_rows_alone({codes.codes, codes.decoded, true}, DType::bf16, y, true, true, kCounts);
    }
}

TEST(BatchInvariant, RowsOfCodedWeights) {
  const Storage per_row{256, 8, DType::f32, CodeTable::integer};
  for (const Storage& storage : {kNf4, kDoubled, kFp4, kInt4, kInt4Wide, kInt8Groups, per_row})
    for (const DType x : {DType::f32, DType::bf16, DType::f16}) {
      SCOPED_TRACE(fmt::format("{} x, {} bits, blocks of {}", dtype_name(x), storage.payload_bits, storage.block));
      const Coded w = coded(Tensor::random(DType::f32, {37, 256}, 2, 0.3), storage);
      const Layer layer{w.codes, w.decoded, true};
      expect_rows_alone(layer, x, x, true, false);
      expect_rows_alone(layer, x, DType::f32, false, true);
      // The codes' values are rounded to the type of x.
      expect_right(layer, x, x != DType::f32);
    }
}

// Whether codes are decoded in registers or row by row, on this machine and on one with fewer instructions.
TEST(BatchInvariant, CodedWeightsGiveTheBitsOfDecodedOnes) {
  if (!host_facts().capabilities.has(kAvx2)) GTEST_SKIP() << "the machine has no AVX2";
  const auto expect_same = [](const Storage& storage, DType dtype, int64_t rows, InstructionSet set) {
    SCOPED_TRACE(fmt::format("{} rows, {} x, {} bits in blocks of {}, {}", rows, dtype_name(dtype),
                             storage.payload_bits, storage.block, instruction_set_name(set)));
    const Coded w = coded(Tensor::random(DType::f32, {37, 256}, 2, 0.3), storage);
    const Tensor x = Tensor::random(dtype, {1, rows, 256}, 1);
    RunOptions options{.only = "rows"};
    options.facts.capabilities = capabilities_of(set);
    const Attrs attrs{{"batch_invariant", int64_t{1}}};
    const Tensor found = run_op("linear", {x, w.codes}, attrs, options).outputs[0];
    EXPECT_TRUE(found.same_bytes(run_op("linear", {x, w.decoded}, attrs, options).outputs[0]));
  };
  for (const InstructionSet set : {InstructionSet::avx2, InstructionSet::avx512, InstructionSet::avx512_bf16})
    for (const Storage& storage : {kNf4, kDoubled, kFp4, kInt4, kInt4Wide, kInt8Groups})
      for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
        for (int64_t rows = 1; rows <= 17 && set <= instruction_set(); ++rows) expect_same(storage, dtype, rows, set);
}

// Rows that no kernel would convert to f32 have no scratch for it.
TEST(BatchInvariant, OtherDenseProductsHaveNoScratchForWideRows) {
  const ConcreteType x{DType::f16, {1, 4, 512}, {}}, w{DType::f16, {64, 512}, {}}, y{DType::f16, {1, 4, 64}, {}};
  const KernelSpec other{"linear", {}, {x, w}, {y}, 0},
      invariant{"linear", {{"batch_invariant", int64_t{1}}}, {x, w}, {y}, 0};
  DeviceFacts facts = host_facts();
  facts.capabilities = capabilities_of(InstructionSet::avx2);
  EXPECT_EQ(rows_scratch(other.call(), facts), 0);
  EXPECT_GE(rows_scratch(invariant.call(), facts), 4 * 512 * 4);
}

// A scale whose bits would round to those of a number: only the row of the weight that has it becomes NaN.
TEST(BatchInvariant, AScaleThatIsNotANumberMakesItsColumnNotANumber) {
  for (const Storage& storage : {kInt4, kInt8Groups})
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const int64_t rows : {1, 3, 8, 20}) {
        SCOPED_TRACE(fmt::format("{} rows, {} x, {} bits", rows, dtype_name(dtype), storage.payload_bits));
        Coded w = coded(Tensor::random(DType::f32, {5, 256}, 2, 0.3), storage);
        const int64_t block = 2 * 256 / storage.block + 1;  // of row 2
        const uint32_t bits = 0x7fffffff;
        std::memcpy(w.codes.as<std::byte>() + storage_layout(storage, 5 * 256).scales + 4 * block, &bits, sizeof bits);
        const Tensor x = Tensor::random(dtype, {1, rows, 256}, 1);
        const Tensor y = run_rows("linear", {x, w.codes}, {{"batch_invariant", int64_t{1}}}).outputs[0];
        for (int64_t i = 0; i < y.count(); ++i) EXPECT_EQ(std::isnan(y.at(i)), i % 5 == 2) << i;
      }
}

// The booked scratch of a wide and narrow layer is enough for every number of rows.
TEST(BatchInvariant, CodedWeightsHaveTheirScratch) {
  if (!host_facts().capabilities.has(kAvx2)) GTEST_SKIP() << "the machine has no AVX2";
  const Coded w = coded(Tensor::random(DType::f32, {3, 16384}, 2, 0.3), kInt4);
  for (const int64_t rows : {1, 8, 9, 45}) {
    const Tensor x = Tensor::random(DType::bf16, {1, rows, 16384}, 1);
    EXPECT_EQ(run_op("linear", {x, w.codes}, {{"batch_invariant", int64_t{1}}}).implementation, "rows") << rows;
  }
}

TEST(BatchInvariant, RowsOfGroups) {
  using enum DType;
  for (const auto& [dtype, ins] : {std::pair<DType, int64_t>{f32, 70}, {bf16, 70}, {bf16, 96}, {f16, 70}}) {
    const Tensor x = Tensor::random(dtype, {1, 64, ins}, 1);
    std::vector<Tensor> weights;
    for (const int64_t outs : {130, 75, 20}) weights.push_back(Tensor::random(dtype, {outs, ins}, 2, 0.5));
    const Attrs attrs{{"batch_invariant", int64_t{1}}};
    const auto call = [&](const Tensor& rows) {
      return run_rows("linear_group", {rows, weights[0], weights[1], weights[2]}, attrs).outputs;
    };
    const std::vector<Tensor> all = call(x);
    for (int64_t row = 0; row < 64; ++row) {
      const std::vector<Tensor> alone = call(row_of(x, row));
      for (size_t i = 0; i < weights.size(); ++i)
        ASSERT_TRUE(row_of(all[i], row).same_bytes(alone[i])) << dtype_name(dtype) << ", row " << row;
    }
  }
}

// Each row is multiplied with its expert's matrix as it would be alone.
TEST(BatchInvariant, RowsOfExperts) {
  using enum DType;
  for (const auto& [dtype, wide] : {std::pair{f32, f32}, {bf16, bf16}, {bf16, f32}}) {
    const Tensor x = Tensor::random(dtype, {1, 40, 1, 70}, 1), w = Tensor::random(wide, {3, 45, 70}, 2, 0.3);
    const Tensor offsets(DType::i32, {4}, {0, 3, 3, 40});
    const Tensor added = Tensor::random(dtype, {1, 40, 1, 45}, 3);
    const Attrs attrs{{"batch_invariant", int64_t{1}}, {"addend", int64_t{1}}};
    const Tensor all = run_rows("expert_linear", {x, w, offsets, added}, attrs).outputs[0];
    for (int64_t row = 0; row < 40; ++row) {
      const Tensor own = row < 3 ? Tensor(DType::i32, {4}, {0, 1, 1, 1}) : Tensor(DType::i32, {4}, {0, 0, 0, 1});
      const auto one = [&](const Tensor& of) {
        Tensor shaped(of.type().dtype, {1, 1, 1, of.type().dims.back()});
        std::memcpy(shaped.as<std::byte>(), row_of(of, row).as<std::byte>(), static_cast<size_t>(shaped.bytes()));
        return shaped;
      };
      const Tensor alone = run_rows("expert_linear", {one(x), w, own, one(added)}, attrs).outputs[0];
      ASSERT_TRUE(row_of(all, row).same_bytes(alone)) << dtype_name(dtype) << ", row " << row;
    }
  }
}

}  // namespace
}  // namespace headroom::op_test
