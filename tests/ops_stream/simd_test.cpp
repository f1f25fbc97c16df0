// Every SIMD kernel against the reference kernel, with each instruction set, in odd shapes and all dtypes. Results must
// not depend on the team, on a second run, or on outputs in the storage of inputs.
#include "stream_support.h"

namespace headroom::op_test {
namespace {

struct Case {
  std::string op;
  std::vector<Tensor> inputs;
  Attrs attrs;
  bool alias = true;  // every output has the dtype of the inputs it may alias
};

double tolerance(const Tensor& tensor) {
  if (tensor.type().dtype == DType::f16) return 1.0 / 1024;
  return tensor.type().dtype == DType::bf16 ? 1.0 / 128 : 4e-6;
}

void check_implementation(const Case& test, const char* implementation, const RunResult& expected) {
  SCOPED_TRACE(implementation);
  RunOptions options;
  options.only = implementation;
  options.trip = 1;
  const RunResult found = run_op(test.op, test.inputs, test.attrs, options);
  for (size_t i = 0; i < found.outputs.size(); ++i)
    expect_close(found.outputs[i], expected.outputs[i], tolerance(found.outputs[i]), tolerance(found.outputs[i]));
  options.use_may = test.alias;
  for (int team : {1, 2}) {
    const Team sized(team);
    const RunResult again = run_op(test.op, test.inputs, test.attrs, options);
    for (size_t i = 0; i < found.outputs.size(); ++i) expect_same_bytes(again.outputs[i], found.outputs[i]);
  }
}

void check(const Case& test) {
  SCOPED_TRACE(test.op + " " + std::to_string(test.inputs[0].type().dims.back()));
  RunOptions reference;
  reference.only = "reference";
  reference.trip = 1;
  const RunResult expected = run_op(test.op, test.inputs, test.attrs, reference);
  for_each_target([&](const std::string&) { check_implementation(test, "simd", expected); });
  if (accepts(test.op, test.inputs, test.attrs, "avx512_bf16")) check_implementation(test, "avx512_bf16", expected);
}

const std::vector<std::vector<int64_t>> kShapes{{1, 1, 1},   {2, 3, 5},    {1, 65, 16},
                                                {3, 70, 33}, {2, 130, 64}, {1, 2, 577}};
const DType kFloats[] = {DType::f32, DType::bf16, DType::f16};

// A call has one narrow type.
bool meet(DType a, DType b) { return a == b || a == DType::f32 || b == DType::f32; }

Tensor acc(int64_t width) { return Tensor::random(DType::f32, {width}, 99); }

TEST(Simd, RmsNorm) {
  for (const auto& dims : kShapes)
    for (DType x : kFloats)
      for (const char* y : {"f32", "bf16", "f16"}) {
        if (!meet(x, *parse_dtype(y))) continue;
        const Tensor w = Tensor::random(DType::f32, {dims.back()}, 2);
        check({"rms_norm", {Tensor::random(x, dims, 1, 3), w}, {{"eps", 1e-5}, {"dtype", y}}});
        check({"rms_norm", {Tensor::random(x, dims, 1, 3), w}, {{"eps", 1e-5}, {"dtype", y}, {"unit", int64_t{1}}}});
        const std::vector<int64_t> heads{dims[0], dims[1], 3 * dims[2]};
        check({"rms_norm", {Tensor::random(x, heads, 1, 3), w}, {{"eps", 1e-5}, {"dtype", y}}});
      }
}

TEST(Simd, RmsNormGrad) {
  for (const auto& dims : kShapes)
    for (DType dx : kFloats)
      for (DType dy : kFloats)
        for (int64_t train : meet(dx, dy) ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{})
          for (int64_t addend : {0, 1}) {
            std::vector<Tensor> inputs{Tensor::random(dx, dims, 1, 3), Tensor::random(DType::f32, {dims.back()}, 2),
                                       Tensor::random(dy, dims, 3)};
            if (train) inputs.push_back(acc(dims.back()));
            if (addend) inputs.push_back(Tensor::random(dx, dims, 4));
            check({"rms_norm_grad", inputs, {{"eps", 1e-5}, {"train", train}, {"addend", addend}}, dx == dy});
            const Attrs unit{{"eps", 1e-5}, {"train", train}, {"addend", addend}, {"unit", int64_t{1}}};
            const std::vector<int64_t> heads{dims[0], std::min<int64_t>(dims[1], 20), 3 * dims[2]};
            inputs[0] = Tensor::random(dx, heads, 1, 3);
            inputs[2] = Tensor::random(dy, heads, 3);
            if (addend) inputs.back() = Tensor::random(dx, heads, 4);
            check({"rms_norm_grad", inputs, unit, dx == dy});
          }
}

TEST(Simd, LayerNorm) {
  for (const auto& dims : kShapes)
    for (DType x : kFloats)
      for (const char* y : {"f32", "bf16", "f16"}) {
        if (!meet(x, *parse_dtype(y))) continue;
        const Tensor w = Tensor::random(DType::f32, {dims.back()}, 2), b = Tensor::random(DType::f32, {dims.back()}, 3);
        check({"layer_norm", {Tensor::random(x, dims, 1, 3), w, b}, {{"eps", 1e-5}, {"dtype", y}}});
      }
}

TEST(Simd, LayerNormGrad) {
  for (const auto& dims : kShapes) {
    if (dims.back() < 2) continue;  // the variance of one element is zero: 1/sqrt(eps) magnifies rounding
    for (DType dx : kFloats)
      for (DType dy : kFloats)
        for (int64_t train : meet(dx, dy) ? std::vector<int64_t>{0, 1, 2, 3} : std::vector<int64_t>{})
          for (int64_t addend : {0, 1}) {
            std::vector<Tensor> inputs{Tensor::random(dx, dims, 1, 3), Tensor::random(DType::f32, {dims.back()}, 2),
                                       Tensor::random(dy, dims, 3)};
            if (train & 1) inputs.push_back(acc(dims.back()));
            if (train & 2) inputs.push_back(acc(dims.back()));
            if (addend) inputs.push_back(Tensor::random(dx, dims, 4));
            check({"layer_norm_grad", inputs, {{"eps", 1e-5}, {"train", train}, {"addend", addend}}, dx == dy});
          }
  }
}

TEST(Simd, Elementwise) {
  for (const auto& dims : kShapes)
    for (DType dtype : kFloats) {
      const Tensor a = Tensor::random(dtype, dims, 1, 8), b = Tensor::random(dtype, dims, 2, 2);
      const Tensor c = Tensor::random(dtype, dims, 3);
      check({"add", {a, b}, {}});
      check({"swiglu", {a, b}, {}});
      check({"swiglu_grad", {a, b, c}, {}});
      for (const char* activation : {"gelu", "gelu_tanh"}) {
        check({"swiglu", {a, b}, {{"activation", activation}}});
        check({"swiglu_grad", {a, c, c}, {{"activation", activation}}});
      }
      check({"scale", {a}, {{"factor", 5.5}}});
      check({"softcap", {a}, {{"cap", 3.0}}});
      check({"softcap_grad", {b, c}, {{"cap", 3.0}}});
      for (const char* how : {"none", "tanh"}) {
        check({"gelu", {a}, {{"approximate", how}}});
        check({"gelu_grad", {a, c}, {{"approximate", how}}});
      }
      for (const DType to : kFloats) {
        if (!meet(dtype, to)) continue;
        const std::string name(dtype_name(to));
        check({"cast", {a}, {{"dtype", name}}});
        check({"cast", {a, Tensor::random(to, dims, 4)}, {{"dtype", name}}});
      }
    }
}

// Elements after the last whole vector have the bits that they have inside one.
TEST(Simd, AnElementsBitsDoNotDependOnItsPlace) {
  constexpr int64_t kCount = 45;
  for (DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const char* activation : {"silu", "gelu", "gelu_tanh"}) {
      SCOPED_TRACE(fmt::format("{} {}", dtype_name(dtype), activation));
      const Tensor x = Tensor::random(dtype, {kCount}, 1, 6);
      const auto behind = [&](int64_t first) {
        Tensor rest(dtype, {kCount - first});
        std::memcpy(rest.as<std::byte>(), x.as<std::byte>() + first * dtype_bytes(dtype),
                    static_cast<size_t>(rest.bytes()));
        return run_op("swiglu", {rest, rest}, {{"activation", activation}}).outputs[0];
      };
      const Tensor all = behind(0);
      for (int64_t first = 1; first < kCount; ++first) {
        const Tensor found = behind(first);
        for (int64_t i = 0; i < found.count(); ++i) ASSERT_EQ(found.at(i), all.at(first + i)) << first << ' ' << i;
      }
    }
}

TEST(Simd, Rotary) {
  for (const auto& [heads, head_dim] : std::vector<std::pair<int64_t, int64_t>>{{1, 2}, {3, 6}, {2, 64}, {5, 34}})
    for (DType dtype : kFloats)
      for (int64_t inverse : {0, 1})
        for (int32_t offset : {0, 5, 1000, -3}) {
          const Tensor x = Tensor::random(dtype, {2, 7, heads * head_dim}, 1);
          const Tensor table = Tensor::random(DType::f32, {9, head_dim}, 2);
          const Attrs attrs{{"heads", heads}, {"inverse", inverse}, {"offset", int64_t{1}}};
          check({"rotary", {x, table, Tensor(DType::i32, {1}, {static_cast<double>(offset)})}, attrs});
          const Tensor wide = Tensor::random(dtype, {2, 7, heads * (head_dim + 3)}, 1);
          check({"rotary", {wide, table, Tensor(DType::i32, {1}, {static_cast<double>(offset)})}, attrs});
          check({"rotary", {wide, table, Tensor(DType::i32, {2}, {4, static_cast<double>(offset)})}, attrs});
        }
}

TEST(Simd, Embeddings) {
  const Tensor ids(DType::i32, {2, 4}, {0, 6, 3, 3, 3, 1, -5, 9});  // the last two are clamped
  for (int64_t width : {1, 17, 33, 64})
    for (DType a : kFloats)
      for (DType b : kFloats) {
        if (!meet(a, b)) continue;
        const Tensor table = Tensor::random(a, {7, width}, 1);
        check({"embedding", {ids, table}, {{"dtype", std::string(dtype_name(b))}}});
        const Tensor dy = Tensor::random(a, {2, 4, width}, 2), whole = Tensor::random(DType::f32, {7, width}, 3);
        for (const char* accumulate : {"carried", "always"})
          for (int64_t padding : {3, 6})
            check({"embedding_grad", {ids, dy, whole}, {{"accumulate", accumulate}, {"padding", padding}}});
        check({"embedding_grad", {ids, dy, whole}, {{"accumulate", "always"}}});
        check({"position_embedding", {dy, whole}, {}});
        check({"position_embedding", {dy, whole, Tensor(DType::i32, {1}, {5})}, {}});
        check({"position_embedding", {dy, whole, Tensor(DType::i32, {2}, {5, -1})}, {}});
        check({"position_embedding_grad", {dy, whole}, {{"accumulate", "always"}}});
      }
}

TEST(Simd, AdamW) {
  for (int64_t count : {1, 31, 1025, 5000})
    for (const DType shadow : kFloats) {
      Tensor v = Tensor::random(DType::f32, {count}, 4);
      for (int64_t i = 0; i < count; ++i) v.set(i, std::abs(v.at(i)));
      Tensor hyper = Tensor::filled(DType::f32, {16}, 0);
      hyper.set(0, 1e-2);
      hyper.set(1, 0.1);
      hyper.set(2, 0.271);
      hyper.set(3, 0.0547);
      std::vector<Tensor> inputs{Tensor::random(DType::f32, {count}, 1),
                                 Tensor::random(DType::f32, {count}, 2),
                                 Tensor::random(DType::f32, {count}, 3),
                                 v,
                                 hyper,
                                 Tensor(DType::f32, {1}, {0.75})};
      if (shadow != DType::f32) inputs.push_back(Tensor::random(shadow, {count}, 5));
      check({"adamw", inputs, {{"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"decay", int64_t{1}}}});
    }
}

TEST(Simd, SumSquares) {
  for (int64_t count : {1, 17, 65536, 200003}) {
    const std::vector<Tensor> inputs{Tensor::random(DType::f32, {count}, 1, 5), Tensor(DType::f64, {1}, {7})};
    check({"sum_squares", inputs, {{"accumulate", "always"}}});
    check({"sum_squares", inputs, {{"accumulate", "first"}}});
  }
}

// A device without AVX2 gets the reference kernel.
TEST(Simd, RefusesWithoutAvx2) {
  RunOptions options;
  options.facts.capabilities = {};
  const Tensor x = Tensor::random(DType::f32, {4}, 1);
  EXPECT_EQ(run_op("add", {x, x}, {}, options).implementation, "reference");
  EXPECT_EQ(run_op("add", {x, x}).implementation, "simd");
}

// Rounding has the bits of the scalar conversion for NaN, infinities, ties and subnormals.
TEST(Simd, CastHasTheBitsOfTheScalarConversion) {
  std::vector<uint32_t> patterns{0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff, 0x3f808000,
                                 0x3f818000, 0x7f7fffff, 0x00000001, 0x80008000, 0,          0x80000000,
                                 0x3f80ffff, 0x00018000, 0x477fefff, 0x477ff000, 0x477fffff, 0x47800000,
                                 0x38800000, 0x387fffff, 0x387fe000, 0x33800000, 0x33000000, 0x33000001,
                                 0x33c00000, 0xb3c00000, 0x3f801000, 0x3f803000, 0xc77ff000, 0x7f801fff};
  while (patterns.size() % 16 != 5) patterns.push_back(static_cast<uint32_t>(patterns.size() * 0x9E3779B9u));
  const int64_t count = static_cast<int64_t>(patterns.size());
  Tensor x(DType::f32, {count});
  std::memcpy(x.as<float>(), patterns.data(), patterns.size() * 4);
  for_each_target([&](const std::string&) {
    const RunResult found = run_op("cast", {x}, {{"dtype", "bf16"}}, {.only = "simd"});
    for (int64_t i = 0; i < count; ++i)
      EXPECT_EQ(found.outputs[0].as<uint16_t>()[i], bfloat16(x.as<float>()[i]).bits)
          << std::hex << patterns[static_cast<size_t>(i)];
    const RunResult half = run_op("cast", {x}, {{"dtype", "f16"}}, {.only = "simd"});
    for (int64_t i = 0; i < count; ++i)
      EXPECT_EQ(half.outputs[0].as<uint16_t>()[i], float16(x.as<float>()[i]).bits)
          << std::hex << patterns[static_cast<size_t>(i)];
  });
}

// Every f16 number is widened like the scalar conversion, and back; NaN is quiet.
TEST(Simd, EveryHalfWidensAndComesBack) {
  Tensor x(DType::f16, {65536});
  for (int64_t i = 0; i < 65536; ++i) x.as<uint16_t>()[i] = static_cast<uint16_t>(i);
  for_each_target([&](const std::string&) {
    const Tensor wide = run_op("cast", {x}, {{"dtype", "f32"}}, {.only = "simd"}).outputs[0];
    const Tensor back = run_op("cast", {wide}, {{"dtype", "f16"}}, {.only = "simd"}).outputs[0];
    for (int64_t i = 0; i < 65536; ++i) {
      const float scalar = static_cast<float>(x.as<float16>()[i]);
      ASSERT_EQ(std::memcmp(&scalar, wide.as<float>() + i, sizeof(float)), 0) << i;
      const auto bits = static_cast<uint16_t>(i),
                 quiet = static_cast<uint16_t>(std::isnan(scalar) ? bits | 0x200 : bits);
      ASSERT_EQ(back.as<uint16_t>()[i], quiet) << i;
      ASSERT_EQ(float16(scalar).bits, quiet) << i;
    }
  });
}

// NaN gives NaN; large inputs saturate to 0, x or a slope of 0 or 1.
TEST(Simd, ActivationsAtTheEdges) {
  const Tensor x(DType::f32, {1, 18},
                 {-1e30, -200, -88, -20, -9, 0, 9, 20, 88, 200, 1e30, NAN, 1e-30, -1e-30, 5, -5, 13, -13});
  const Tensor one = Tensor::filled(DType::f32, {1, 18}, 1);
  for_each_target([&](const std::string&) {
    for (const char* how : {"none", "tanh"}) {
      const Attrs attrs{{"approximate", how}};
      expect_close(run_op("gelu", {x}, attrs, {.only = "simd"}).outputs[0],
                   run_op("gelu", {x}, attrs, {.only = "reference"}).outputs[0], 1e-8, 3e-6);
      const Tensor slope = run_op("gelu_grad", {x, one}, attrs, {.only = "simd"}).outputs[0];
      for (int64_t i : {0, 1, 2}) EXPECT_NEAR(slope.at(i), 0, 1e-6) << how;
      for (int64_t i : {8, 9, 10}) EXPECT_NEAR(slope.at(i), 1, 1e-6) << how;
      EXPECT_TRUE(std::isnan(slope.at(11)));
    }
    expect_close(run_op("swiglu", {x, one}, {}, {.only = "simd"}).outputs[0],
                 run_op("swiglu", {x, one}, {}, {.only = "reference"}).outputs[0], 1e-8, 3e-6);
  });
  Tensor narrow(DType::bf16, {1, 18}), narrow_one = Tensor::filled(DType::bf16, {1, 18}, 1);
  for (int64_t i = 0; i < 18; ++i) narrow.set(i, x.at(i));
  if (!accepts("swiglu", {narrow, narrow_one}, {}, "avx512_bf16")) return;
  expect_close(run_op("swiglu", {narrow, narrow_one}, {}, {.only = "avx512_bf16"}).outputs[0],
               run_op("swiglu", {narrow, narrow_one}, {}, {.only = "reference"}).outputs[0], 1e-8, 1.0 / 128);
}

}  // namespace
}  // namespace headroom::op_test
