#include "../cuda_blas/fake_cublaslt.h"
#include "../ops_support/coded_tensor.h"
#include "cuda_shim/cuda_harness.h"
#include "ops/cuda/cublaslt.h"

namespace headroom::linear_on_cuda {
namespace {

using namespace op_test;

struct Size {
  int64_t rows, outs, ins;
};

std::vector<int64_t> weight_dims(bool out_in, const Size& size) {
  return out_in ? std::vector<int64_t>{size.outs, size.ins} : std::vector<int64_t>{size.ins, size.outs};
}

Tolerance tolerance_of(DType result) { return result == DType::f32 ? Tolerance{3e-5, 1e-5} : Tolerance{2e-2, 1e-2}; }

class CudaLinear : public testing::Test {
 protected:
  CudaLinear() { set_threads(1); }
};

// Calls body(attrs, inputs, tolerance) for linear in every layout, dtype and ending.
template <typename Body>
void each_linear(const Size& size, const Body& body) {
  for (const auto& [operand, result] :
       {std::pair(DType::f32, DType::f32), std::pair(DType::bf16, DType::bf16), std::pair(DType::bf16, DType::f32)})
    for (bool out_in : {true, false})
      for (int ends = 0; ends < 4; ++ends) {
        SCOPED_TRACE(fmt::format("{} x {} x {}, {} to {}, out_in {}, ends {}", size.rows, size.outs, size.ins,
                                 dtype_name(operand), dtype_name(result), out_in, ends));
        const bool bias = (ends & 1) != 0, residual = (ends & 2) != 0;
        std::vector<Tensor> inputs{Tensor::random(operand, {1, size.rows, size.ins}, 1),
                                   Tensor::random(operand, weight_dims(out_in, size), 2)};
        if (bias) inputs.push_back(Tensor::random(DType::f32, {size.outs}, 3));
        if (residual) inputs.push_back(Tensor::random(result, {1, size.rows, size.outs}, 4));
        const Attrs attrs{{"layout", out_in ? "out_in" : "in_out"},
                          {"bias", int64_t{bias}},
                          {"residual", int64_t{residual}},
                          {"dtype", std::string(dtype_name(result))}};
        body(attrs, inputs, tolerance_of(result));
      }
}

TEST_F(CudaLinear, TilesAgreeWithTheReference) {
  RunOptions in_place;
  in_place.use_may = true;
  for (const Size& size : {Size{9, 5, 3}, Size{70, 68, 36}})
    each_linear(size, [&](const Attrs& attrs, const std::vector<Tensor>& inputs, Tolerance tolerance) {
      expect_cuda_matches("linear", inputs, attrs, tolerance);
      if (attrs.integer("residual") != 0) expect_cuda_matches("linear", inputs, attrs, tolerance, in_place);
    });
  const Size large{130, 260, 20};  // more large tiles than multiprocessors
  expect_cuda_matches("linear",
                      {Tensor::random(DType::bf16, {large.rows, large.ins}, 1),
                       Tensor::random(DType::bf16, weight_dims(true, large), 2)},
                      {}, tolerance_of(DType::bf16));
}

TEST_F(CudaLinear, CodesAreDecodedBeforeTheyAreMultiplied) {
  const Size size{20, 40, 70};
  const Storage per_row{static_cast<int32_t>(size.ins), 8, DType::f32, CodeTable::integer};
  for (const Storage& storage : {kNf4, kDoubled, kFp4, kInt4, kInt4Wide, kInt8Groups, per_row})
    for (DType dtype : kFloats) {
      SCOPED_TRACE(fmt::format("{} {}", code_table_name(storage.codes), dtype_name(dtype)));
      const Tensor w = coded(Tensor::random(DType::f32, weight_dims(true, size), 2), storage).codes;
      for (int64_t rows : {size.rows, int64_t{2}})
        expect_cuda_matches("linear", {Tensor::random(dtype, {rows, size.ins}, 1), w}, {}, tolerance_of(dtype));
      expect_cuda_matches("linear_dx", {Tensor::random(dtype, {size.rows, size.outs}, 3), w}, {}, tolerance_of(dtype));
    }
}

// The gradients of linear for each layout, dtype and trip.
template <typename Body>
void each_gradient(const Size& size, const Body& body) {
  for (DType dtype : kFloats)
    for (bool out_in : {true, false}) {
      SCOPED_TRACE(
          fmt::format("{} x {} x {}, {}, out_in {}", size.rows, size.outs, size.ins, dtype_name(dtype), out_in));
      const Attrs layout{{"layout", out_in ? "out_in" : "in_out"}};
      const Tensor x = Tensor::random(dtype, {size.rows, size.ins}, 1);
      const Tensor w = Tensor::random(dtype, weight_dims(out_in, size), 2);
      const Tensor dy = Tensor::random(dtype, {size.rows, size.outs}, 3);
      RunOptions options;
      body("linear_dx", {dy, w}, layout, tolerance_of(dtype), options);
      Attrs added = layout;
      added.set("addend", int64_t{1});
      options.use_may = true;
      body("linear_dx", {dy, w, Tensor::random(dtype, {size.rows, size.ins}, 4)}, added, tolerance_of(dtype), options);
      for (const char* accumulate : {"carried", "always"})
        for (int64_t trip : {0, 1}) {
          Attrs attrs = layout;
          attrs.set("accumulate", std::string(accumulate));
          options.trip = trip;
          body("linear_dw", {x, dy, Tensor::random(DType::f32, weight_dims(out_in, size), 5)}, attrs,
               Tolerance{1e-4, 1e-5}, options);
        }
    }
}

// Tensor-core tiles support rows of whole packs: depths that end within a part, more parts than are held, ragged tiles.
TEST_F(CudaLinear, TensorCoresAgreeWithTheReference) {
  for (const Size& size : {Size{24, 40, 16}, Size{72, 64, 104}, Size{136, 264, 136}}) {
    const auto by_mma = [&](const char* op, const std::vector<Tensor>& inputs, const Attrs& attrs, Tolerance tolerance,
                            RunOptions options) {
      options.only = "mma";
      const RunResult found = run_cuda_op(op, inputs, attrs, options);
      options.only = "reference";
      expect_close(found.outputs[0], run_op(op, inputs, attrs, options).outputs[0], tolerance.absolute,
                   tolerance.relative);
    };
    each_linear(size, [&](const Attrs& attrs, const std::vector<Tensor>& inputs, Tolerance tolerance) {
      if (inputs[0].type().dtype == DType::bf16 && (size.rows < 100 || attrs.integer("bias") != 0))
        by_mma("linear", inputs, attrs, tolerance, {});
    });
    if (size.rows > 100) continue;
    each_gradient(size, [&](const char* op, const std::vector<Tensor>& inputs, const Attrs& attrs, Tolerance tolerance,
                            const RunOptions& options) {
      if (inputs[0].type().dtype == DType::bf16) by_mma(op, inputs, attrs, tolerance, options);
    });
  }
}

TEST_F(CudaLinear, FewRowsAgreeWithTheReference) {
  for (int64_t rows : {1, 2, 3, 8})
    each_linear({rows, 19,
                 rows < 3    ? 600
                 : rows == 8 ? 264
                             : 77},
                [&](const Attrs& attrs, const std::vector<Tensor>& inputs, Tolerance tolerance) {
                  expect_cuda_matches("linear", inputs, attrs, {tolerance.absolute * 2, tolerance.relative});
                  EXPECT_EQ(run_cuda_op("linear", inputs, attrs).implementation, "rows");
                });
  each_linear({4, 264, 40}, [&](const Attrs& attrs, const std::vector<Tensor>& inputs, Tolerance tolerance) {
    expect_cuda_matches("linear", inputs, attrs, tolerance);
  });
}

// A single row, a few and many, for which large tiles are used: the same bits.
TEST_F(CudaLinear, RowsDoNotDependOnTheirNumber) {
  constexpr int64_t kRows = 130, kIns = 72, kOuts = 264;
  for (DType dtype : kFloats)
    for (const char* layout : {"out_in", "in_out"}) {
      SCOPED_TRACE(fmt::format("{} {}", dtype_name(dtype), layout));
      const Tensor x = Tensor::random(dtype, {kRows, 1, kIns}, 1), bias = Tensor::random(DType::f32, {kOuts}, 3);
      const Tensor w = Tensor::random(dtype, weight_dims(std::string_view(layout) == "out_in", {1, kOuts, kIns}), 2);
      const Attrs attrs{{"batch_invariant", int64_t{1}}, {"bias", int64_t{1}}, {"layout", layout}, {"dtype", "f32"}};
      const RunResult all = run_cuda_op("linear", {x, w, bias}, attrs);
      EXPECT_EQ(all.implementation, dtype == DType::bf16 ? "mma" : "plain");
      for (int64_t count : {1, 3, 65}) {
        Tensor some(dtype, {count, 1, kIns});
        for (int64_t i = 0; i < count * kIns; ++i) some.set(i, x.at((kRows - count) * kIns + i));
        const Tensor found = run_cuda_op("linear", {some, w, bias}, attrs).outputs[0];
        for (int64_t i = 0; i < count * kOuts; ++i)
          ASSERT_EQ(found.at(i), all.outputs[0].at((kRows - count) * kOuts + i)) << count << " rows, " << i;
      }
    }
}

TEST_F(CudaLinear, LowRankProductsAreAdded) {
  for (DType dtype : kFloats)
    for (int64_t rows : {3, 24}) {
      const Tensor x = Tensor::random(dtype, {rows, 16}, 1), w = Tensor::random(dtype, {40, 16}, 2);
      const Tensor p = Tensor::random(dtype, {rows, 8}, 3), q = Tensor::random(dtype, {40, 8}, 4);
      const Tensor bias = Tensor::random(DType::f32, {40}, 5), residual = Tensor::random(dtype, {rows, 40}, 6);
      const Tolerance tolerance = dtype == DType::f32 ? Tolerance{3e-5, 1e-5} : Tolerance{4e-2, 2e-2};
      expect_cuda_matches("linear", {x, w, bias, p, q, residual},
                          {{"bias", int64_t{1}}, {"low_rank", int64_t{1}}, {"residual", int64_t{1}}}, tolerance);
      const Tensor dy = Tensor::random(dtype, {rows, 40}, 7), down = Tensor::random(dtype, {8, 16}, 8);
      expect_cuda_matches("linear_dx", {dy, w, p, down}, {{"low_rank", int64_t{1}}}, tolerance);
    }
}

// The same bits as with the weight rounded beforehand, for few rows and many.
TEST_F(CudaLinear, AWideWeightIsRounded) {
  const auto expect_rounded = [](const char* op, std::vector<Tensor> inputs, const Attrs& attrs, const char* only) {
    RunOptions options;
    options.only = only;
    const Tensor found = run_cuda_op(op, inputs, attrs, options).outputs[0];
    inputs[1] = rounded(inputs[1], inputs[0].type().dtype);
    expect_same_bytes(found, run_cuda_op(op, inputs, attrs, options).outputs[0]);
  };
  using Kind = std::pair<DType, const char*>;
  for (int64_t rows : {3, 24})
    for (const auto& [dtype, only] :
         {Kind{DType::bf16, "mma"}, Kind{DType::bf16, "plain"}, Kind{DType::f16, "plain"}, Kind{DType::bf16, ""}}) {
      const Tensor x = Tensor::random(dtype, {rows, 16}, 1), w = Tensor::random(DType::f32, {40, 16}, 2);
      const Tensor p = Tensor::random(dtype, {rows, 8}, 3), q = Tensor::random(dtype, {40, 8}, 4);
      const Tensor dy = Tensor::random(dtype, {rows, 40}, 5);
      expect_rounded("linear", {x, w}, {}, only);
      expect_rounded("linear", {x, w, p, q}, {{"low_rank", int64_t{1}}}, only);
      expect_rounded("linear_dx", {dy, w}, {}, only);
      expect_cuda_matches("linear", {x, w}, {}, tolerance_of(dtype));
    }
}

TEST_F(CudaLinear, NoRowsNoWork) {
  const std::vector<Tensor> inputs{Tensor(DType::f32, {0, 8}), Tensor::random(DType::f32, {4, 8}, 2)};
  EXPECT_EQ(run_cuda_op("linear", inputs).outputs[0].count(), 0);
}

TEST_F(CudaLinear, GradientsAgreeWithTheReference) {
  for (const Size& size : {Size{3, 5, 9}, Size{35, 66, 70}})
    each_gradient(size, [](const char* op, const std::vector<Tensor>& inputs, const Attrs& attrs, Tolerance tolerance,
                           const RunOptions& options) { expect_cuda_matches(op, inputs, attrs, tolerance, options); });
}

TEST_F(CudaLinear, BiasGradientsAgreeWithTheReference) {
  for (DType dtype : kFloats)
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{1, 1}, {130, 33}, {77, 64}, {300, 264}, {65, 1031}})
      for (const char* accumulate : {"carried", "always"})
        for (int64_t trip : {0, 1}) {
          RunOptions options;
          options.trip = trip;
          expect_cuda_matches("bias_grad",
                              {Tensor::random(dtype, {rows, cols}, 1), Tensor::random(DType::f32, {cols}, 2)},
                              {{"accumulate", accumulate}}, {1e-4, 1e-5}, options);
        }
}

TEST_F(CudaLinear, RefusesWhatItDoesNotKnow) {
  TestServices services;
  const CudaContext context = test_context(services);
  KernelSpec spec = spec_of("linear", {Tensor(DType::f32, {2, 4}), Tensor(DType::f32, {3, 4})}, Attrs{}, context.facts);
  spec.attrs.set("unheard", int64_t{1});
  for (const CudaCandidate& candidate : cuda_kernels().candidates("linear"))
    EXPECT_EQ(candidate.make(spec, context).refusal, "attribute unheard") << candidate.implementation;
}

// The library, replaced by a fake that multiplies by the given descriptions.
class CudaLinearByLibrary : public CudaLinear {
 protected:
  CudaLinearByLibrary() { services.products = make_cublaslt(cublaslt_test::fake_api()); }

  void expect_library_matches(std::string_view op, const std::vector<Tensor>& inputs, const Attrs& attrs,
                              Tolerance tolerance, RunOptions options) {
    CudaContext context = test_context(services);
    context.facts.gemm_workspace_cap = 1000;
    const KernelSpec spec = spec_of(op, inputs, attrs, context.facts);
    std::string chosen;
    const std::unique_ptr<CudaKernel> kernel = make_cuda_kernel(spec, context, "cublaslt", &chosen);
    const std::vector<Tensor> found =
        run_call(spec, inputs, options, chosen, [&](const KernelCall& call) { kernel->enqueue(call, nullptr); });
    options.only = "reference";
    Attrs exact = attrs;  // the fake multiplies in fp32 for any compute type
    if (attrs.has("multiply")) exact.set("multiply", std::string());
    expect_close(found[0], run_op(op, inputs, exact, options).outputs[0], tolerance.absolute, tolerance.relative);
    EXPECT_LE(fake.workspace, 1024u);
  }

  cublaslt_test::Fake& fake = cublaslt_test::fresh_fake();
  TestServices services;
};

TEST_F(CudaLinearByLibrary, AgreesWithTheReference) {
  fake.known[0].workspace = 1000;
  each_linear({10, 7, 6}, [&](const Attrs& attrs, const std::vector<Tensor>& inputs, Tolerance tolerance) {
    RunOptions options;
    expect_library_matches("linear", inputs, attrs, tolerance, options);
    options.use_may = true;
    expect_library_matches("linear", inputs, attrs, tolerance, options);
  });
  each_gradient({10, 7, 6},
                [&](const char* op, const std::vector<Tensor>& inputs, const Attrs& attrs, Tolerance tolerance,
                    const RunOptions& options) { expect_library_matches(op, inputs, attrs, tolerance, options); });
}

TEST_F(CudaLinearByLibrary, ComesAfterFewRowsAndBeforeOurTiles) {
  const CudaContext context = test_context(services);
  for (const auto& [rows, implementation] : {std::pair(8, "rows"), std::pair(9, "cublaslt")}) {
    std::string chosen;
    make_cuda_kernel(
        spec_of("linear", {Tensor(DType::f32, {rows, 4}), Tensor(DType::f32, {3, 4})}, Attrs{}, context.facts), context,
        {}, &chosen);
    EXPECT_EQ(chosen, implementation);
  }
  fake.known_count = 0;  // no algorithm
  std::string chosen;
  make_cuda_kernel(spec_of("linear", {Tensor(DType::f32, {9, 5}), Tensor(DType::f32, {3, 5})}, Attrs{}, context.facts),
                   context, {}, &chosen);
  EXPECT_EQ(chosen, "plain");
}

TEST_F(CudaLinearByLibrary, RoundsAsTheAttributeSays) {
  for (const auto& [multiply, compute] :
       {std::pair("", cublaslt::kCompute32), std::pair("bf16", cublaslt::kComputeFastBfloat16),
        std::pair("bf16x3", cublaslt::kComputeFastTf32)}) {
    Attrs attrs;
    if (*multiply) attrs.set("multiply", std::string(multiply));
    expect_library_matches("linear", {Tensor::random(DType::f32, {9, 4}, 1), Tensor::random(DType::f32, {3, 4}, 2)},
                           attrs, {1e-5, 1e-5}, {});
    EXPECT_EQ(fake.compute, compute);
  }
}

}  // namespace
}  // namespace headroom::linear_on_cuda
