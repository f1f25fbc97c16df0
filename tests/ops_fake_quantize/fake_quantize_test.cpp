// Fake quantisation: torchao's numbers, the formulas in double precision, and fast kernels against the reference in odd
// shapes. tests/passes/qat_*.plan has the results of autodiff.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../data_files/data_files.h"
#include "../ops_support/op_harness.h"

namespace headroom::op_test {
namespace {

using Json = nlohmann::json;

constexpr const char* kKernels[] = {"reference", "simd"};

Attrs grid_attrs(int64_t bits, int64_t group = 32) { return {{"bits", bits}, {"group", group}}; }

// The repository's copy, and all files if they are next to the repository.
std::vector<Json> vector_files() {
  std::vector<Json> found;
  for (const std::filesystem::path& path :
       {std::filesystem::path(HEADROOM_SOURCE_DIR) / "tests/ops_fake_quantize/vectors.json",
        test::shared_file("accept/golden-qat/vectors.json")})
    if (std::ifstream file(path); file) found.push_back(Json::parse(file));
  return found;
}

Tensor row_of(const Json& values) {
  const auto numbers = values.get<std::vector<double>>();
  return Tensor(DType::f32, {1, static_cast<int64_t>(numbers.size())}, numbers);
}

void expect_numbers(const Tensor& found, const Json& wanted) {
  const auto numbers = wanted.get<std::vector<double>>();
  ASSERT_EQ(static_cast<size_t>(found.count()), numbers.size());
  for (int64_t i = 0; i < found.count(); ++i)
    EXPECT_EQ(found.at(i), numbers[static_cast<size_t>(i)]) << "element " << i;
}

TEST(FakeQuantize, WeightsAreThoseOfTorchao) {
  const std::vector<Json> files = vector_files();
  ASSERT_FALSE(files.empty());
  for (const Json& file : files)
    for (const Json& json : file.at("weights"))
      for (const char* kernel : kKernels) {
        SCOPED_TRACE(
            fmt::format("{}, {} bits, {}", json.at("name").get<std::string>(), json.at("bits").get<int>(), kernel));
        const Attrs attrs = grid_attrs(json.at("bits").get<int64_t>());
        const Tensor w = row_of(json.at("x")), ones = Tensor::filled(DType::f32, w.type().dims, 1);
        expect_numbers(run_op("fake_quantize_weight", {w}, attrs, {.only = kernel}).outputs[0], json.at("y"));
        expect_numbers(run_op("fake_quantize_weight_grad", {ones, w}, attrs, {.only = kernel}).outputs[0],
                       json.at("gradient"));
      }
}

TEST(FakeQuantize, ActivationsAreThoseOfTorchao) {
  for (const Json& file : vector_files())
    for (const Json& json : file.at("activations"))
      for (const char* kernel : kKernels) {
        SCOPED_TRACE(fmt::format("{}, {}", json.at("name").get<std::string>(), kernel));
        const Tensor x = row_of(json.at("x")), ones = Tensor::filled(DType::f32, x.type().dims, 1);
        const std::vector<Tensor> codes = run_op("quantize_tokens", {x}, {}, {.only = kernel}).outputs;
        expect_numbers(codes[0], json.at("codes"));
        EXPECT_EQ(codes[1].at(0), json.at("scale").get<double>());
        EXPECT_EQ(codes[1].at(1), json.at("zero_point").get<double>());
        expect_numbers(run_op("dequantize_tokens", codes, {}, {.only = kernel}).outputs[0], json.at("y"));
        expect_numbers(run_op("quantize_tokens_grad", {ones, codes[0]}, {}, {.only = kernel}).outputs[0],
                       json.at("gradient"));
      }
}

// Within one step of the exact formula, and within half a step of x unless it was clamped.
TEST(FakeQuantize, StaysWithinHalfAStep) {
  const Tensor w = Tensor::random(DType::f32, {5, 96}, 7);
  for (const int64_t bits : {4, 8}) {
    const Tensor y = run_op("fake_quantize_weight", {w}, grid_attrs(bits)).outputs[0];
    const double high = bits == 4 ? 7 : 127, low = -high - 1;
    for (int64_t first = 0; first < w.count(); first += 32) {
      double most = 0;
      for (int64_t i = first; i < first + 32; ++i) most = std::max(most, std::abs(w.at(i)));
      const double scale = most / ((high - low) / 2);
      for (int64_t i = first; i < first + 32; ++i) {
        const double exact = std::clamp(w.at(i), low * scale, high * scale);
        EXPECT_NEAR(y.at(i), exact, scale * 0.5001) << bits << " bits, element " << i;
        EXPECT_NEAR(y.at(i) / scale, std::round(y.at(i) / scale), 1e-3);
      }
    }
  }
}

// Shapes that are not multiples of a vector, with f32 and bf16 inputs and outputs.
TEST(FakeQuantize, VectorKernelsGiveTheReferencesBits) {
  const auto same = [](const char* op, const std::vector<Tensor>& in, const Attrs& attrs) {
    if (!accepts(op, in, attrs, "simd")) return;
    const std::vector<Tensor> a = run_op(op, in, attrs, {.only = "reference"}).outputs;
    const std::vector<Tensor> b = run_op(op, in, attrs, {.only = "simd"}).outputs;
    for (size_t i = 0; i < a.size(); ++i) expect_same_bytes(b[i], a[i]);
  };
  uint64_t seed = 1;
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const char* out : {"f32", "bf16"})
      for (const int64_t width : {1, 7, 16, 33, 64, 100}) {
        SCOPED_TRACE(fmt::format("{} to {}, {}", dtype_name(dtype), out, width));
        const Tensor x = Tensor::random(dtype, {3, 5, width}, ++seed, 4);
        const Tensor w = Tensor::random(dtype, {6, width}, ++seed, 0.3);
        Attrs grid = grid_attrs(seed % 2 == 0 ? 4 : 8, width);
        same("fake_quantize_weight_grad", {Tensor::random(DType::f32, {6, width}, ++seed), w}, grid);
        grid.set("dtype", std::string(out));
        same("fake_quantize_weight", {w}, grid);
        same("quantize_tokens", {x}, {});
        const std::vector<Tensor> codes = run_op("quantize_tokens", {x}).outputs;
        same("dequantize_tokens", codes, {{"dtype", std::string(out)}});
        same("quantize_tokens_grad", {x, codes[0]}, {{"dtype", std::string(out)}});
        same("quantize_tokens_grad", {x, codes[0]}, {});
      }
}

TEST(FakeQuantize, WhatIsNotFiniteIsNotHidden) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    for (const int64_t at : {0, 31, 33})
      for (const char* kernel : kKernels) {
        Tensor x = Tensor::random(DType::f32, {2, 34}, 3);
        x.set(at, bad);
        const std::vector<Tensor> codes = run_op("quantize_tokens", {x}, {}, {.only = kernel}).outputs;
        const Tensor y = run_op("dequantize_tokens", codes, {}, {.only = kernel}).outputs[0];
        const Tensor w = run_op("fake_quantize_weight", {x}, grid_attrs(4, 34), {.only = kernel}).outputs[0];
        for (int64_t i = 0; i < x.count(); ++i) {
          EXPECT_EQ(std::isnan(y.at(i)), i < 34) << kernel << " " << at;
          EXPECT_EQ(std::isnan(w.at(i)), i < 34) << kernel << " " << at;
        }
      }
}

TEST(FakeQuantize, TheGradientMayTakeTheCotangentsPlace) {
  const Tensor x = Tensor::random(DType::f32, {4, 50}, 5);
  const Tensor codes = run_op("quantize_tokens", {x}).outputs[0];
  for (const char* kernel : kKernels)
    expect_same_bytes(run_op("quantize_tokens_grad", {x, codes}, {}, {.only = kernel, .use_may = true}).outputs[0],
                      run_op("quantize_tokens_grad", {x, codes}).outputs[0]);
}

TEST(FakeQuantize, IllegalCallsAreRefused) {
  const Tensor w = Tensor::random(DType::f32, {2, 48}, 5);
  EXPECT_THROW(run_op("fake_quantize_weight", {w}, grid_attrs(4)), InternalError);
  EXPECT_THROW(run_op("fake_quantize_weight", {w}, grid_attrs(5, 16)), InternalError);
  EXPECT_THROW(run_op("fake_quantize_weight", {w}, {{"bits", int64_t{4}}}), InternalError);
  EXPECT_THROW(run_op("dequantize_tokens", {w, w}), InternalError);
}

}  // namespace
}  // namespace headroom::op_test
