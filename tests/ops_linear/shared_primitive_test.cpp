// Equal products of the library share what it compiles for them, whoever owns their kernels.
#include <gtest/gtest.h>

#include "../ops_support/op_harness.h"
#include "base/process_memory.h"
#include "ops/cpu/matmul.h"

namespace headroom {
namespace {

MatmulSpec spec_of(DType operand, int64_t rows) {
  MatmulSpec spec;
  spec.size = {rows, 96, 160};
  spec.operand = spec.result = operand;
  return spec;
}

TEST(SharedPrimitive, ManyEqualProductsTakeTheMemoryOfOne) {
  for (const DType operand : {DType::f32, DType::bf16}) {
    const auto make = [&](int64_t rows) {
      return make_onednn_matmul(spec_of(operand, rows), op_test::host_facts(), int64_t{1} << 30).matmul;
    };
    std::vector<std::unique_ptr<Matmul>> kept;
    kept.push_back(make(64));
    if (!kept.front()) continue;  // no product of the library on this machine
    const int64_t before = resident_bytes();
    for (int i = 0; i < 400; ++i) kept.push_back(make(64));
    EXPECT_LT(resident_bytes() - before, int64_t{4} << 20) << dtype_name(operand);
  }
}

}  // namespace
}  // namespace headroom
