// Reference kernels against formulas in double precision, gradients against central differences of those formulas.
#include "stream_support.h"

namespace headroom::op_test {
namespace {

const RunOptions kReference{.only = "reference", .trip = 1};

TEST(Formula, RmsNorm) {
  const Tensor x = Tensor::random(DType::f32, {2, 3, 7}, 1), w = Tensor::random(DType::f32, {7}, 2);
  const RunResult found = run_op("rms_norm", {x, w}, {{"eps", 1e-3}}, kReference);
  const Vector expected = rms_norm_formula(values(x), values(w), 1e-3);
  expect_near(found.outputs[0], expected, 1e-7, 1e-6);
  const Tensor residual = Tensor::random(DType::f32, {2, 3, 7}, 3);
  Vector sums = expected;
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += values(residual)[i];
  expect_near(run_op("rms_norm", {x, w, residual}, {{"eps", 1e-3}, {"residual", int64_t{1}}}).outputs[0], sums, 1e-6,
              1e-6);
}

TEST(Formula, RmsNormGrad) {
  const Tensor x = Tensor::random(DType::f32, {2, 3, 7}, 1), w = Tensor::random(DType::f32, {7}, 2);
  const Tensor dy = Tensor::random(DType::f32, {2, 3, 7}, 3), acc = Tensor::random(DType::f32, {7}, 4);
  const Tensor addend = Tensor::random(DType::f32, {2, 3, 7}, 5);
  const Attrs attrs{{"eps", 1e-3}, {"train", int64_t{1}}, {"addend", int64_t{1}}, {"accumulate", "always"}};
  Vector dx =
      differences(values(x), values(dy), [&](const Vector& at) { return rms_norm_formula(at, values(w), 1e-3); });
  Vector dw =
      differences(values(w), values(dy), [&](const Vector& at) { return rms_norm_formula(values(x), at, 1e-3); });
  for (size_t i = 0; i < dx.size(); ++i) dx[i] += values(addend)[i];
  for (size_t i = 0; i < dw.size(); ++i) dw[i] += values(acc)[i];
  for (const char* which : {"reference", "simd"}) {
    const RunResult found = run_op("rms_norm_grad", {x, w, dy, acc, addend}, attrs, {.only = which, .trip = 1});
    expect_near(found.outputs[0], dx, 2e-6, 1e-6);
    expect_near(found.outputs[1], dw, 2e-6, 1e-6);
  }
}

// With a weight that divides the row, its runs are normalised one by one; a weight stored minus one is taken plus one.
TEST(Formula, RmsNormOfHeadsAndWithUnitWeights) {
  const Tensor x = Tensor::random(DType::f32, {2, 3, 15}, 1), w = Tensor::random(DType::f32, {5}, 2);
  const Tensor dy = Tensor::random(DType::f32, {2, 3, 15}, 3), acc = Tensor::filled(DType::f32, {5}, 0);
  for (int64_t unit : {0, 1}) {
    const auto by_x = [&](const Vector& at) { return rms_norm_formula(at, values(w), 1e-3, unit != 0); };
    const auto by_w = [&](const Vector& at) { return rms_norm_formula(values(x), at, 1e-3, unit != 0); };
    const Attrs attrs{{"eps", 1e-3}, {"unit", unit}};
    Attrs grad = attrs;
    grad.set("train", int64_t{1}).set("accumulate", "always");
    for (const char* which : {"reference", "simd"}) {
      const RunOptions options{.only = which, .trip = 1};
      expect_near(run_op("rms_norm", {x, w}, attrs, options).outputs[0], by_x(values(x)), 1e-6, 1e-6);
      const RunResult found = run_op("rms_norm_grad", {x, w, dy, acc}, grad, options);
      expect_near(found.outputs[0], differences(values(x), values(dy), by_x), 2e-6, 1e-6);
      expect_near(found.outputs[1], differences(values(w), values(dy), by_w), 2e-6, 1e-6);
    }
  }
}

TEST(Formula, LayerNorm) {
  const Tensor x = Tensor::random(DType::f32, {2, 3, 7}, 1), w = Tensor::random(DType::f32, {7}, 2);
  const Tensor b = Tensor::random(DType::f32, {7}, 3);
  const RunResult found = run_op("layer_norm", {x, w, b}, {{"eps", 1e-3}}, kReference);
  expect_near(found.outputs[0], layer_norm_formula(values(x), values(w), values(b), 1e-3), 1e-7, 1e-6);
}

TEST(Formula, LayerNormGrad) {
  const Tensor x = Tensor::random(DType::f32, {2, 3, 7}, 1), w = Tensor::random(DType::f32, {7}, 2);
  const Tensor b = Tensor::random(DType::f32, {7}, 6), dy = Tensor::random(DType::f32, {2, 3, 7}, 3);
  const Tensor zero = Tensor::filled(DType::f32, {7}, 0);
  const Attrs attrs{{"eps", 1e-3}, {"train", int64_t{3}}, {"accumulate", "always"}, {"accumulate_bias", "always"}};
  const Vector vx = values(x), vw = values(w), vb = values(b), vdy = values(dy);
  const Vector dx = differences(vx, vdy, [&](const Vector& at) { return layer_norm_formula(at, vw, vb, 1e-3); });
  const Vector dw = differences(vw, vdy, [&](const Vector& at) { return layer_norm_formula(vx, at, vb, 1e-3); });
  const Vector db = differences(vb, vdy, [&](const Vector& at) { return layer_norm_formula(vx, vw, at, 1e-3); });
  for (const char* which : {"reference", "simd"}) {
    const RunResult found = run_op("layer_norm_grad", {x, w, dy, zero, zero}, attrs, {.only = which, .trip = 1});
    expect_near(found.outputs[0], dx, 3e-6, 1e-6);
    expect_near(found.outputs[1], dw, 3e-6, 1e-6);
    expect_near(found.outputs[2], db, 3e-6, 1e-6);
  }
}

TEST(Formula, Activations) {
  const Tensor a = Tensor::random(DType::f32, {3, 11}, 1, 4), b = Tensor::random(DType::f32, {3, 11}, 2);
  const Tensor dy = Tensor::random(DType::f32, {3, 11}, 3);
  expect_near(run_op("swiglu", {a, b}, {}, kReference).outputs[0], swiglu_formula(values(a), values(b)), 1e-7, 1e-6);
  const auto by_gate = [&](const Vector& at) { return swiglu_formula(at, values(b)); };
  const auto by_up = [&](const Vector& at) { return swiglu_formula(values(a), at); };
  for (const char* which : {"reference", "simd"}) {
    const RunResult found = run_op("swiglu_grad", {a, b, dy}, {}, {.only = which});
    expect_near(found.outputs[0], differences(values(a), values(dy), by_gate), 1e-6, 1e-6);
    expect_near(found.outputs[1], differences(values(b), values(dy), by_up), 1e-6, 1e-6);
    for (bool tanh : {false, true}) {
      const Attrs attrs{{"approximate", tanh ? "tanh" : "none"}};
      expect_near(run_op("gelu", {a}, attrs, {.only = which}).outputs[0], gelu_formula(values(a), tanh), 1e-6, 1e-6);
      const auto gelu = [&](const Vector& at) { return gelu_formula(at, tanh); };
      expect_near(run_op("gelu_grad", {a, dy}, attrs, {.only = which}).outputs[0],
                  differences(values(a), values(dy), gelu), 1e-6, 1e-6);
    }
  }
}

TEST(Formula, GatedUnitsWithGelu) {
  const Tensor a = Tensor::random(DType::f32, {3, 11}, 1, 4), b = Tensor::random(DType::f32, {3, 11}, 2);
  const Tensor dy = Tensor::random(DType::f32, {3, 11}, 3);
  for (const char* activation : {"gelu", "gelu_tanh"}) {
    const auto gated = [&](const Vector& gate, const Vector& up) {
      Vector y = gelu_formula(gate, activation == std::string("gelu_tanh"));
      for (size_t i = 0; i < y.size(); ++i) y[i] *= up[i];
      return y;
    };
    const auto by_gate = [&](const Vector& at) { return gated(at, values(b)); };
    const auto by_up = [&](const Vector& at) { return gated(values(a), at); };
    const Attrs attrs{{"activation", activation}};
    for (const char* which : {"reference", "simd"}) {
      const RunOptions options{.only = which};
      expect_near(run_op("swiglu", {a, b}, attrs, options).outputs[0], gated(values(a), values(b)), 1e-6, 1e-6);
      const RunResult found = run_op("swiglu_grad", {a, b, dy}, attrs, options);
      expect_near(found.outputs[0], differences(values(a), values(dy), by_gate), 2e-6, 1e-6);
      expect_near(found.outputs[1], differences(values(b), values(dy), by_up), 2e-6, 1e-6);
    }
  }
}

TEST(Formula, ScaleAndSoftcap) {
  const Tensor x = Tensor::random(DType::f32, {3, 37}, 1, 9), dy = Tensor::random(DType::f32, {3, 37}, 2);
  const auto cap = [](const Vector& at) {
    Vector y = at;
    for (double& value : y) value = 2.5 * std::tanh(value / 2.5);
    return y;
  };
  Vector scaled = values(x);
  for (double& value : scaled) value *= 5.5;
  for (const char* which : {"reference", "simd"}) {
    const RunOptions options{.only = which};
    expect_near(run_op("scale", {x}, {{"factor", 5.5}}, options).outputs[0], scaled, 0, 1e-7);
    const Tensor y = run_op("softcap", {x}, {{"cap", 2.5}}, options).outputs[0];
    expect_near(y, cap(values(x)), 1e-9, 3e-7);
    const Tensor dx = run_op("softcap_grad", {y, dy}, {{"cap", 2.5}}, options).outputs[0];
    expect_near(dx, differences(values(x), values(dy), cap), 1e-6, 1e-6);
  }
}

// Channels after the table's width pass unchanged.
TEST(Formula, PartialRotary) {
  const Tensor x = Tensor::random(DType::f32, {2, 5, 3 * 7}, 1), table = Tensor::random(DType::f32, {8, 4}, 2);
  for (const char* which : {"reference", "simd"}) {
    const RunResult found = run_op("rotary", {x, table}, {{"heads", int64_t{3}}}, {.only = which});
    for (int64_t at = 0; at < x.count(); ++at) {
      const int64_t channel = at % 7, row = at / 21 % 5, i = channel % 2;
      const double c = table.at(row * 4 + i), s = table.at(row * 4 + 2 + i);
      double wanted = x.at(at);
      if (channel < 2) wanted = x.at(at) * c - x.at(at + 2) * s;
      if (channel >= 2 && channel < 4) wanted = x.at(at) * c + x.at(at - 2) * s;
      ASSERT_NEAR(found.outputs[0].at(at), wanted, 1e-6) << at;
    }
  }
}

// Pairs (i, i + d/2) turn by the angle of their position, and back with inverse.
TEST(Formula, Rotary) {
  constexpr int64_t kHeads = 3, kHalf = 2, kSeq = 5;
  const Tensor x = Tensor::random(DType::f32, {2, kSeq, kHeads * 2 * kHalf}, 1);
  Tensor table(DType::f32, {8, 2 * kHalf});
  for (int64_t p = 0; p < 8; ++p)
    for (int64_t i = 0; i < kHalf; ++i) {
      table.set(p * 2 * kHalf + i, std::cos(static_cast<double>(p * (i + 1))));
      table.set(p * 2 * kHalf + kHalf + i, std::sin(static_cast<double>(p * (i + 1))));
    }
  const Tensor offset(DType::i32, {1}, {2});
  const RunResult found = run_op("rotary", {x, table, offset}, {{"heads", kHeads}, {"offset", int64_t{1}}}, kReference);
  for (int64_t at = 0; at < x.count(); ++at) {
    const int64_t in_head = at % (2 * kHalf), i = in_head % kHalf, s = at / (kHeads * 2 * kHalf) % kSeq;
    const double angle = static_cast<double>((s + 2) * (i + 1));
    const double a = x.at(in_head < kHalf ? at : at - kHalf), b = x.at(in_head < kHalf ? at + kHalf : at);
    const double turned =
        in_head < kHalf ? a * std::cos(angle) - b * std::sin(angle) : b * std::cos(angle) + a * std::sin(angle);
    ASSERT_NEAR(found.outputs[0].at(at), turned, 1e-6);
  }
  const Attrs back{{"heads", kHeads}, {"offset", int64_t{1}}, {"inverse", int64_t{1}}};
  expect_near(run_op("rotary", {found.outputs[0], table, offset}, back, kReference).outputs[0], values(x), 1e-6, 0);
}

TEST(Formula, Embeddings) {
  const Tensor ids(DType::i32, {1, 3}, {2, 0, 2}), table(DType::f32, {3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor y = run_op("embedding", {ids, table}, {}, kReference).outputs[0];
  EXPECT_EQ(values(y), (Vector{5, 6, 1, 2, 5, 6}));
  const Tensor dy(DType::f32, {1, 3, 2}, {1, 2, 10, 20, 100, 200}), acc = Tensor::filled(DType::f32, {3, 2}, 0.5);
  for (const char* which : {"reference", "simd"}) {
    RunOptions options{.only = which, .trip = 1};
    const Attrs carried{{"accumulate", "carried"}}, always{{"accumulate", "always"}};
    const Vector added{10.5, 20.5, 0.5, 0.5, 101.5, 202.5}, fresh{10, 20, 0, 0, 101, 202};
    EXPECT_EQ(values(run_op("embedding_grad", {ids, dy, acc}, carried, options).outputs[0]), added);
    options.trip = 0;
    EXPECT_EQ(values(run_op("embedding_grad", {ids, dy, acc}, always, options).outputs[0]), added);
    EXPECT_EQ(values(run_op("embedding_grad", {ids, dy, acc}, carried, options).outputs[0]), fresh);
    const Attrs padded{{"accumulate", "always"}, {"padding", int64_t{2}}};  // lookups of row 2 do not change it
    EXPECT_EQ(values(run_op("embedding_grad", {ids, dy, acc}, padded, options).outputs[0]),
              (Vector{10.5, 20.5, 0.5, 0.5, 0.5, 0.5}));
    const Tensor two(DType::f32, {2, 2, 2}, {1, 2, 3, 4, 10, 20, 30, 40});
    EXPECT_EQ(values(run_op("position_embedding_grad", {two, acc}, carried, options).outputs[0]),
              (Vector{11, 22, 33, 44, 0, 0}));
    EXPECT_EQ(values(run_op("position_embedding_grad", {two, acc}, always, options).outputs[0]),
              (Vector{11.5, 22.5, 33.5, 44.5, 0.5, 0.5}));
    EXPECT_EQ(values(run_op("position_embedding", {two, table}, {}, options).outputs[0]),
              (Vector{2, 4, 6, 8, 11, 22, 33, 44}));
    const Tensor offset(DType::i32, {1}, {1});
    EXPECT_EQ(values(run_op("position_embedding", {two, table, offset}, {}, options).outputs[0]),
              (Vector{4, 6, 8, 10, 13, 24, 35, 46}));
  }
}

TEST(Formula, SequenceLengthsAndPositionsFromARow) {
  const Tensor ids(DType::i32, {4, 3}, {5, 6, 7, 5, 0, 7, 5, 6, 0, 0, 0, 0});
  EXPECT_EQ(values(run_op("sequence_lengths", {ids}, {{"pad", int64_t{0}}}).outputs[0]), (Vector{3, 3, 2, 1}));
  EXPECT_EQ(values(run_op("zero_ids", {ids}).outputs[0]), Vector(12, 0));
  EXPECT_EQ(values(run_op("padding_starts", {ids}, {{"pad", int64_t{0}}}).outputs[0]),
            (Vector{0, 0, 0, 0, 2, 1, 0, 0, 3, 1, 2, 3}));
  const Tensor x = Tensor::filled(DType::f32, {1, 2, 1}, 1), table(DType::f32, {4, 1}, {10, 20, 30, 40});
  const Tensor dy(DType::f32, {2, 2, 1}, {1, 2, 3, 4});
  const Attrs first{{"first", int64_t{2}}, {"accumulate", "always"}};
  const Tensor starts(DType::i32, {2, 2}, {1, 1, 0, 2});  // padding and a token, a token and padding
  for (const char* which : {"reference", "simd"}) {
    const RunOptions options{.only = which, .trip = 1};
    EXPECT_EQ(values(run_op("position_embedding", {dy, table, starts}, first, options).outputs[0]),
              (Vector{21, 32, 33, 24}));
    EXPECT_EQ(values(run_op("position_embedding_grad", {dy, table, starts}, first, options).outputs[0]),
              (Vector{10, 20, 35, 40}));
    EXPECT_EQ(values(run_op("position_embedding", {x, table}, first, options).outputs[0]), (Vector{31, 41}));
    EXPECT_EQ(values(run_op("position_embedding_grad", {dy, table}, first, options).outputs[0]),
              (Vector{10, 20, 34, 46}));
  }
}

TEST(Formula, SplitAndConcat) {
  const Tensor x(DType::f32, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const RunResult parts = run_op("split", {x}, {{"sizes", "1,2,1"}});
  ASSERT_EQ(parts.outputs.size(), 3u);
  EXPECT_EQ(values(parts.outputs[0]), (Vector{1, 5}));
  EXPECT_EQ(values(parts.outputs[1]), (Vector{2, 3, 6, 7}));
  EXPECT_EQ(values(parts.outputs[2]), (Vector{4, 8}));
  expect_same_bytes(run_op("concat", parts.outputs).outputs[0], x);
  const Attrs holes{{"sizes", "1,2,1"}, {"present", "010"}};
  EXPECT_EQ(values(run_op("concat", {parts.outputs[1]}, holes).outputs[0]), (Vector{0, 2, 3, 0, 0, 6, 7, 0}));
  const Tensor wide = Tensor::random(DType::bf16, {3, 50, 39}, 1);
  expect_same_bytes(run_op("concat", run_op("split", {wide}, {{"sizes", "5,33,1"}}).outputs).outputs[0], wide);
}

// Two groups of the sizes 1 and 2.
TEST(Formula, SplitAndConcatByGroups) {
  const Tensor x(DType::f32, {2, 6}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Attrs attrs{{"sizes", "1,2"}, {"groups", int64_t{2}}};
  const RunResult parts = run_op("split", {x}, attrs);
  EXPECT_EQ(values(parts.outputs[0]), (Vector{1, 4, 7, 10}));
  EXPECT_EQ(values(parts.outputs[1]), (Vector{2, 3, 5, 6, 8, 9, 11, 12}));
  expect_same_bytes(run_op("concat", parts.outputs, attrs).outputs[0], x);
  Attrs hole = attrs;
  hole.set("present", "01");
  EXPECT_EQ(values(run_op("concat", {parts.outputs[1]}, hole).outputs[0]),
            (Vector{0, 2, 3, 0, 5, 6, 0, 8, 9, 0, 11, 12}));
}

TEST(Formula, NextLabels) {
  const Tensor labels(DType::i32, {2, 3}, {1, 2, 3, 4, -100, 6});
  EXPECT_EQ(values(run_op("next_labels", {labels}).outputs[0]), (Vector{2, 3, -100, -100, 6, -100}));
}

// Seven rows in three parts: of 3, 2 and 2.
TEST(Formula, TakeAndPutRows) {
  const Tensor x = Tensor::random(DType::bf16, {2, 7, 5}, 1);
  const std::vector<std::pair<int64_t, int64_t>> rows{{0, 3}, {3, 2}, {5, 2}};
  Tensor joined = Tensor::filled(DType::bf16, {2, 7, 5}, 9);
  for (int64_t part = 0; part < 3; ++part) {
    const Attrs attrs{{"part", part}, {"parts", int64_t{3}}};
    const Tensor taken = run_op("take_rows", {x}, attrs).outputs[0];
    const auto [begin, count] = rows[static_cast<size_t>(part)];
    ASSERT_EQ(taken.type().dims, (std::vector<int64_t>{2, count, 5}));
    for (int64_t i = 0; i < taken.count(); ++i)
      EXPECT_EQ(taken.at(i), x.at((i / (count * 5) * 7 + begin) * 5 + i % (count * 5))) << part << ' ' << i;
    joined = run_op("put_rows", {taken, joined}, attrs).outputs[0];
  }
  expect_same_bytes(joined, x);
}

TEST(Formula, RowsOfEveryDtype) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i64, DType::i32, DType::u8}) {
    const Tensor x = Tensor::filled(dtype, {3, 4}, 7);
    const Attrs attrs{{"part", int64_t{1}}, {"parts", int64_t{3}}};
    const Tensor taken = run_op("take_rows", {x}, attrs).outputs[0];
    EXPECT_EQ(values(taken), (Vector{7, 7, 7}));
    expect_same_bytes(run_op("put_rows", {taken, x}, attrs).outputs[0], x);
  }
}

TEST(Formula, SelectLast) {
  const Tensor x = Tensor::random(DType::bf16, {1, 4, 3}, 1);
  for (const auto& [index, row] : std::vector<std::pair<double, int64_t>>{{0, 0}, {2, 2}, {9, 3}, {-1, 0}}) {
    const Tensor y = run_op("select_last", {x, Tensor(DType::i32, {1}, {index})}).outputs[0];
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(y.at(i), x.at(row * 3 + i));
  }
}

// Gradients of parameters do not depend on how the batch is split into micro-batches.
TEST(Formula, MicroBatchesGiveTheSameBits) {
  constexpr int64_t kBatch = 4, kSeq = 70, kWidth = 33;
  const Tensor x = Tensor::random(DType::f32, {kBatch, kSeq, kWidth}, 1);
  const Tensor dy = Tensor::random(DType::bf16, {kBatch, kSeq, kWidth}, 2), w = Tensor::random(DType::f32, {kWidth}, 3);
  const Attrs norm{{"eps", 1e-5}, {"train", int64_t{1}}, {"accumulate", "carried"}};
  Attrs both = norm;
  both.set("train", int64_t{3}).set("accumulate_bias", "carried");
  const Attrs carried{{"accumulate", "carried"}};
  const auto sums = [&](int64_t step) {
    const Tensor vector = Tensor::filled(DType::f32, {kWidth}, 7),
                 table = Tensor::filled(DType::f32, {kSeq, kWidth}, 7);
    std::vector<Tensor> accs{vector, vector, vector, table, table};
    for (int64_t b = 0; b < kBatch; b += step) {
      Tensor part(DType::f32, {step, kSeq, kWidth}), grad(DType::bf16, {step, kSeq, kWidth}),
          ids(DType::i32, {step, kSeq});
      for (int64_t i = 0; i < part.count(); ++i) part.set(i, x.at(b * kSeq * kWidth + i));
      for (int64_t i = 0; i < part.count(); ++i) grad.set(i, dy.at(b * kSeq * kWidth + i));
      for (int64_t i = 0; i < ids.count(); ++i) ids.set(i, static_cast<double>((b * kSeq + i) * 7 % 13));
      const RunOptions options{.only = "simd", .trip = b / step};
      accs[0] = run_op("rms_norm_grad", {part, w, grad, accs[0]}, norm, options).outputs[1];
      const RunResult layer = run_op("layer_norm_grad", {part, w, grad, accs[1], accs[2]}, both, options);
      accs[1] = layer.outputs[1];
      accs[2] = layer.outputs[2];
      accs[3] = run_op("embedding_grad", {ids, grad, accs[3]}, carried, options).outputs[0];
      accs[4] = run_op("position_embedding_grad", {grad, accs[4]}, carried, options).outputs[0];
    }
    return accs;
  };
  const std::vector<Tensor> whole = sums(kBatch);
  for (int64_t step : {1, 2}) {
    const std::vector<Tensor> cut = sums(step);
    for (size_t i = 0; i < whole.size(); ++i) expect_same_bytes(cut[i], whole[i]);
  }
}

}  // namespace
}  // namespace headroom::op_test
