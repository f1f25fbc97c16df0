// Adapters in slots, with one used per row: against the formula in double precision, and bitwise among other rows.
#include <gtest/gtest.h>

#include "base/error.h"
#include "stream_support.h"

namespace headroom::op_test {
namespace {

struct LoraCase {
  int64_t slots, rank, ins, outs;
  DType x = DType::f32, matrices = DType::f32, y = DType::f32;
};

std::vector<LoraCase> lora_cases() {
  return {{1, 1, 1, 1},
          {3, 8, 64, 96},
          {2, 5, 130, 1100},
          {4, 16, 37, 513, DType::f32, DType::bf16, DType::f32},
          {2, 64, 257, 33, DType::bf16, DType::bf16, DType::bf16},
          {3, 3, 48, 512, DType::f16, DType::f16, DType::f16},
          {2, 4, 40, 24, DType::bf16, DType::f32, DType::f32}};
}

// The operands of a call, and those of a call with only some of its rows.
struct Operands {
  Tensor x, a, b, scales, slots, y;

  std::vector<Tensor> all() const { return {x, a, b, scales, slots, y}; }
  std::vector<Tensor> rows(const std::vector<int64_t>& chosen) const {
    return {of_rows(x, chosen), a, b, scales, of_rows(slots, chosen), of_rows(y, chosen)};
  }

  static Tensor of_rows(const Tensor& from, const std::vector<int64_t>& chosen) {
    std::vector<int64_t> dims = from.type().dims;
    const int64_t width = from.count() / dims[0];
    dims[0] = static_cast<int64_t>(chosen.size());
    Tensor to(from.type().dtype, dims);
    for (size_t row = 0; row < chosen.size(); ++row)
      for (int64_t i = 0; i < width; ++i)
        to.set(static_cast<int64_t>(row) * width + i, from.at(chosen[row] * width + i));
    return to;
  }
};

Operands random_operands(const LoraCase& c, const std::vector<double>& slots) {
  const auto rows = static_cast<int64_t>(slots.size());
  return {Tensor::random(c.x, {rows, 1, c.ins}, 1),
          Tensor::random(c.matrices, {c.slots, c.rank, c.ins}, 2),
          Tensor::random(c.matrices, {c.slots, c.rank, c.outs}, 3),
          Tensor::random(DType::f32, {c.slots}, 4, 2),
          Tensor(DType::i32, {rows}, slots),
          Tensor::random(c.y, {rows, 1, c.outs}, 5)};
}

// Slots of all kinds: with an adapter, empty, and out of range.
std::vector<double> mixed_slots(const LoraCase& c) {
  const auto slots = static_cast<double>(c.slots);
  return {0, -1, slots - 1, 0, slots, -7, slots - 1, 1000000};
}

Tensor formula(const Operands& in, const LoraCase& c) {
  Tensor expected(DType::f64, in.y.type().dims);
  for (int64_t row = 0; row < in.slots.count(); ++row) {
    const auto slot = static_cast<int64_t>(in.slots.at(row));
    for (int64_t o = 0; o < c.outs; ++o) {
      double sum = in.y.at(row * c.outs + o);
      for (int64_t k = 0; slot >= 0 && slot < c.slots && k < c.rank; ++k) {
        double t = 0;
        for (int64_t i = 0; i < c.ins; ++i) t += in.x.at(row * c.ins + i) * in.a.at((slot * c.rank + k) * c.ins + i);
        sum += in.scales.at(slot) * t * in.b.at((slot * c.rank + k) * c.outs + o);
      }
      expected.set(row * c.outs + o, sum);
    }
  }
  return expected;
}

std::vector<std::string> implementations() {
  if (!host_facts().capabilities.has(kAvx2)) return {"reference"};
  return {"simd", "reference"};
}

TEST(LoraRows, IsTheSumOfTheRowAndItsAdaptersProduct) {
  for (const LoraCase& c : lora_cases())
    for (const std::string& only : implementations()) {
      SCOPED_TRACE(fmt::format("rank {}, {} to {}, {}", c.rank, c.ins, c.outs, only));
      const Operands in = random_operands(c, mixed_slots(c));
      for (const bool in_place : {false, true}) {
        const Tensor found = run_op("lora_rows", in.all(), {}, {only, 0, in_place}).outputs[0];
        EXPECT_EQ(found.type().dtype, c.y);
        const double limit = c.y == DType::f32 ? 1e-4 : c.y == DType::f16 ? 1e-2 : 5e-2;
        expect_close(found, formula(in, c), limit, c.y == DType::f32 ? 1e-5 : 1e-2);
      }
    }
}

TEST(LoraRows, ARowWithoutAnAdapterIsUnchanged) {
  for (const LoraCase& c : lora_cases())
    for (const std::string& only : implementations()) {
      const Operands in = random_operands(c, {-1, static_cast<double>(c.slots), -2147483648.0});
      for (const bool in_place : {false, true})
        expect_same_bytes(run_op("lora_rows", in.all(), {}, {only, 0, in_place}).outputs[0], in.y);
    }
}

TEST(LoraRows, ARowDoesNotDependOnItsCompany) {
  const int before = threads();
  for (const LoraCase& c : lora_cases())
    for (const std::string& only : implementations()) {
      const Operands in = random_operands(c, mixed_slots(c));
      const Tensor all = run_op("lora_rows", in.all(), {}, {only}).outputs[0];
      for (int64_t row = 0; row < in.slots.count(); ++row)
        for (const int team : {1, 3}) {
          set_threads(team);
          const Tensor alone = run_op("lora_rows", in.rows({row}), {}, {only}).outputs[0];
          expect_same_bytes(alone, Operands::of_rows(all, {row}));
        }
      set_threads(before);
      const Tensor turned = run_op("lora_rows", in.rows({7, 6, 5, 4, 3, 2, 1, 0}), {}, {only}).outputs[0];
      expect_same_bytes(turned, Operands::of_rows(all, {7, 6, 5, 4, 3, 2, 1, 0}));
    }
}

// A slot with more ranks than its adapter is zero beyond them.
TEST(LoraRows, RanksOfZeroChangeNothing) {
  const LoraCase narrow{2, 3, 50, 70}, wide{2, 8, 50, 70};
  for (const std::string& only : implementations()) {
    const Operands small = random_operands(narrow, mixed_slots(narrow));
    Operands large = random_operands(wide, mixed_slots(wide));
    const auto pad = [&](const Tensor& from, Tensor& to, int64_t width) {
      for (int64_t i = 0; i < to.count(); ++i) {
        const int64_t slot = i / (wide.rank * width), k = i / width % wide.rank;
        to.set(i, k < narrow.rank ? from.at((slot * narrow.rank + k) * width + i % width) : 0);
      }
    };
    pad(small.a, large.a, wide.ins);
    pad(small.b, large.b, wide.outs);
    expect_same_bytes(run_op("lora_rows", large.all(), {}, {only}).outputs[0],
                      run_op("lora_rows", small.all(), {}, {only}).outputs[0]);
  }
}

TEST(LoraRows, MalformedCallsAreRefused) {
  const LoraCase c{2, 4, 8, 12};
  const std::vector<Tensor> good = random_operands(c, {0, 1, -1}).all();
  EXPECT_NO_THROW(run_op("lora_rows", good));
  const auto refused = [&](size_t which, const Tensor& other) {
    std::vector<Tensor> inputs = good;
    inputs[which] = other;
    EXPECT_THROW(run_op("lora_rows", inputs), InternalError) << which;
  };
  refused(0, Tensor(DType::f32, {3, 1, 9}));
  refused(0, Tensor(DType::f32, {3, 2, 8}));
  refused(0, Tensor(DType::f32, {2, 1, 8}));
  refused(1, Tensor(DType::f32, {2, 5, 8}));
  refused(1, Tensor(DType::bf16, {2, 4, 8}));
  refused(2, Tensor(DType::f32, {2, 12, 4}));
  refused(3, Tensor(DType::f32, {3}));
  refused(3, Tensor(DType::f64, {2}));
  refused(4, Tensor(DType::i32, {2}));
  refused(4, Tensor(DType::f32, {3}));
  refused(5, Tensor(DType::i32, {3, 1, 12}));
}

}  // namespace
}  // namespace headroom::op_test
