// An embedding whose table is in blocks of codes: bitwise the result of the decoded table.
#include <gtest/gtest.h>

#include "../ops_support/coded_tensor.h"
#include "base/error.h"
#include "hwy/targets.h"

namespace headroom {
namespace {

using namespace op_test;

constexpr int64_t kRows = 7;

Tensor ids() { return Tensor(DType::i32, {2, 4}, {0, 6, 3, 3, 3, 1, -5, 9}); }  // the last two are clamped

std::vector<Storage> storages(int64_t width) {
  return {kNf4, kDoubled, kFp4, kInt4, kInt4Wide, kInt8Groups, {static_cast<int32_t>(width), 8, DType::f32}};
}

void expect_decoded(int64_t width, const Storage& storage, const char* dtype) {
  SCOPED_TRACE(fmt::format("{} {} in blocks of {}, rows of {}, {}", storage.payload_bits,
                           code_table_name(storage.codes), storage.block, width, dtype));
  const Coded table = coded(Tensor::random(DType::f32, {kRows, width}, 1, 0.3), storage);
  const Attrs attrs{{"dtype", dtype}};
  for (const char* implementation : {"simd", "reference"}) {
    if (!op_test::accepts("embedding", {ids(), table.codes}, attrs, implementation)) continue;
    SCOPED_TRACE(implementation);
    const RunOptions options{.only = implementation};
    expect_same_bytes(run_op("embedding", {ids(), table.codes}, attrs, options).outputs[0],
                      run_op("embedding", {ids(), table.decoded}, attrs, {.only = "reference"}).outputs[0]);
  }
}

// The last width is read in several pieces.
TEST(CodedTable, GivesTheBitsOfTheDecodedOne) {
  for (const int64_t width : {1, 17, 64, 160, 2080})
    for (const Storage& storage : storages(width))
      for (const char* dtype : {"f32", "bf16", "f16"}) expect_decoded(width, storage, dtype);
}

TEST(CodedTable, EveryVectorWidthDecodesAlike) {
  const int64_t supported = hwy::SupportedTargets();
  for (const int64_t target : {int64_t{HWY_AVX3}, int64_t{HWY_AVX2}, int64_t{HWY_NEON}}) {
    if ((supported & target) == 0) continue;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    for (const Storage& storage : storages(160))
      for (const char* dtype : {"f32", "bf16", "f16"}) expect_decoded(160, storage, dtype);
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(CodedTable, OnlyAnF32TableMayBeCodes) {
  const Tensor table(ConcreteType{DType::f32, {kRows, 64}, kInt8Groups});
  const std::vector<ConcreteType> types = op_test::infer_types(find_op("embedding"), {ids(), table}, {});
  EXPECT_EQ(types[0], (ConcreteType{DType::f32, {2, 4, 64}}));
  EXPECT_THROW(op_test::infer_types(find_op("embedding"),
                                    {ids(), Tensor(ConcreteType{DType::bf16, {kRows, 64}, kInt8Groups})}, {}),
               InternalError);
  EXPECT_THROW(
      op_test::infer_types(find_op("embedding"), {Tensor(ConcreteType{DType::i32, {2, 4}, kInt8Groups}), table}, {}),
      InternalError);
}

// The cost model books what is read: the rows that are looked up, as they are stored.
TEST(CodedTable, OnlyTheCodesOfItsRowsAreRead) {
  const ConcreteType result{DType::f32, {2, 4, 64}}, index{DType::i32, {2, 4}};
  const auto bytes = [&](const Storage& storage) {
    const std::vector<ConcreteType> inputs{index, {DType::f32, {kRows, 64}, storage}}, outputs{result};
    return find_op("embedding").work({inputs, outputs, {}}).bytes;
  };
  EXPECT_EQ(bytes({}) - bytes(kInt8Groups), 8 * (256 - 72));
}

}  // namespace
}  // namespace headroom
