// The key-value cache: appending rows, and attention against it in chunks and one token at a time.
#include <gtest/gtest.h>

#include "base/error.h"
#include "naive_attention.h"
#include "ops/attention/scratch.h"

namespace headroom::op_test {
namespace {

Tensor offset_of(int32_t offset) { return Tensor(DType::i32, {1}, {static_cast<double>(offset)}); }

Tensor append(const Tensor& rows, const Tensor& cache, int32_t offset) {
  return run_op("kv_append", {rows, cache, offset_of(offset)}).outputs[0];
}

TEST(KvAppend, WritesRowsAtTheOffset) {
  for (DType from : {DType::f32, DType::bf16, DType::f16})
    for (DType to : {DType::f32, DType::bf16, DType::f16}) {
      if (from != to && from != DType::f32 && to != DType::f32) continue;
      const Tensor rows = Tensor::random(from, {1, 3, 8}, 1), cache = Tensor::random(to, {1, 7, 8}, 2);
      const Tensor found = append(rows, cache, 2);
      for (int64_t i = 0; i < found.count(); ++i) {
        const bool written = i >= 2 * 8 && i < 5 * 8;
        const double kept = cache.at(i);
        Tensor rounded(to, {1});
        rounded.set(0, written ? rows.at(i - 2 * 8) : kept);
        const double expected = rounded.at(0);
        ASSERT_EQ(found.at(i), expected) << i;
      }
    }
}

TEST(KvAppend, RowsOutsideTheCacheAreDropped) {
  const Tensor rows = Tensor::random(DType::f32, {1, 4, 8}, 1), cache = Tensor::random(DType::f32, {1, 6, 8}, 2);
  for (int32_t offset : {-2147483647 - 1, -100, -4, -2, 0, 3, 5, 6, 7, 1000, 2147483647}) {
    const Tensor found = append(rows, cache, offset);  // the harness checks the bytes around the cache
    for (int64_t row = 0; row < 6; ++row) {
      const int64_t from = row - static_cast<int64_t>(offset);
      for (int64_t i = 0; i < 8; ++i)
        ASSERT_EQ(found.at(row * 8 + i), from >= 0 && from < 4 ? rows.at(from * 8 + i) : cache.at(row * 8 + i))
            << "offset " << offset << " row " << row;
    }
  }
}

TEST(KvAppend, ShapeRuleNamesWhatIsWrong) {
  const auto infer = [](std::vector<int64_t> rows, std::vector<int64_t> cache, DType offset) {
    std::vector<Type> types{{DType::f32, {}}, {DType::f32, {}}, {offset, {Dim::of(1)}}};
    for (int64_t dim : rows) types[0].shape.push_back(Dim::of(dim));
    for (int64_t dim : cache) types[1].shape.push_back(Dim::of(dim));
    return find_op("kv_append").infer(types, {});
  };
  EXPECT_NO_THROW(infer({1, 4, 8}, {1, 6, 8}, DType::i32));
  EXPECT_THROW(infer({1, 4, 8}, {1, 6, 16}, DType::i32), InternalError);
  EXPECT_THROW(infer({2, 4, 8}, {1, 6, 8}, DType::i32), InternalError);
  EXPECT_THROW(infer({1, 4, 8}, {1, 6, 8}, DType::f32), InternalError);
  EXPECT_THROW(infer({4, 8}, {6, 8}, DType::i32), InternalError);
}

// Rows [begin, begin + count) of a [1, rows, width] tensor.
Tensor slice(const Tensor& tensor, int64_t begin, int64_t count) {
  const int64_t width = tensor.type().dims[2];
  Tensor part(tensor.type().dtype, {1, count, width});
  for (int64_t i = 0; i < part.count(); ++i) part.set(i, tensor.at(begin * width + i));
  return part;
}

// Feeds q, k, v in chunks of `chunk` rows through the cache and gathers the outputs.
Values cached_outputs(const Case& c, const Inputs& in, DType cache_dtype, int64_t capacity, int64_t chunk,
                      const std::string& implementation) {
  const int64_t width = c.kv_heads * c.dim;
  Tensor k = Tensor::filled(cache_dtype, {1, capacity, width}, NAN), v = k;
  Values outputs;
  for (int64_t at = 0; at < c.queries; at += chunk) {
    const int64_t count = std::min(chunk, c.queries - at);
    k = append(slice(in.k, at, count), k, static_cast<int32_t>(at));
    v = append(slice(in.v, at, count), v, static_cast<int32_t>(at));
    const std::vector<Tensor> inputs{slice(in.q, at, count), k, v, offset_of(static_cast<int32_t>(at))};
    if (!accepts("attention_cached", inputs, c.attrs(), implementation)) return {};
    const RunResult result = run_op("attention_cached", inputs, c.attrs(), {implementation});
    for (int64_t i = 0; i < result.outputs[0].count(); ++i) outputs.push_back(result.outputs[0].at(i));
  }
  return outputs;
}

TEST(AttentionCached, ChunksAreAttention) {
  int runs = 0;
  for (DType dtype : {DType::f32, DType::bf16})
    for (DType cache : {DType::f32, DType::bf16})
      for (const Case& c : {Case{1, 70, 6, 2, 64, true, 0, 0, dtype}, Case{1, 70, 3, 3, 20, true, 9, 0, dtype}}) {
        const Inputs in = random_inputs(c);
        const NaiveForward expected = naive_forward(c, values_of(in.q), values_of(in.k), values_of(in.v));
        const double limit = dtype == DType::bf16 || cache == DType::bf16 ? 2e-2 : 5e-6;
        for (const char* implementation : {"amx", "avx512_bf16", "simd", "reference", "decode"})
          for (int64_t chunk : {1, 7, 33, 70}) {
            if (chunk == 1 && (c.dim == 20 || std::string(implementation) == "reference")) continue;
            const Values found = cached_outputs(c, in, cache, 90, chunk, implementation);
            if (found.empty()) continue;
            ++runs;
            SCOPED_TRACE(c.text() + " " + implementation + " chunk " + std::to_string(chunk));
            expect_close(Tensor(DType::f64, in.q.type().dims, found), Tensor(DType::f64, in.q.type().dims, expected.o),
                         limit, limit);
          }
      }
  EXPECT_GE(runs, 24);
}

TEST(AttentionCached, DecodingJoinsChunksOfALongCache) {
  for (DType dtype : {DType::f32, DType::bf16})
    for (int64_t dim : {8, 20, 64, 80}) {
      for (int64_t window : {0, 300}) {
        const int64_t keys = 3 * kDecodeChunk + 40;
        const Attrs attrs{{"heads", int64_t{4}}, {"kv_heads", int64_t{2}}, {"window", window}};
        const Tensor q = Tensor::random(dtype, {2, 1, 4 * dim}, 1, 2);
        const Tensor k = Tensor::random(dtype, {2, keys, 2 * dim}, 2, 2),
                     v = Tensor::random(dtype, {2, keys, 2 * dim}, 3);
        for (int32_t offset : {0, 5, 255, 256, 700, 807}) {
          const std::vector<Tensor> inputs{q, k, v, offset_of(offset)};
          if (!accepts("attention_cached", inputs, attrs, "decode")) GTEST_SKIP();
          const Tensor found = run_op("attention_cached", inputs, attrs, {"decode"}).outputs[0];
          const Tensor expected = run_op("attention_cached", inputs, attrs, {"reference"}).outputs[0];
          const double limit = dtype == DType::f32 ? 3e-6 : 1e-2;
          expect_close(found, expected, limit, limit);
        }
      }
    }
}

TEST(AttentionCached, DecodingDoesNotDependOnTheTeam) {
  const Attrs attrs{{"heads", int64_t{6}}, {"kv_heads", int64_t{2}}};
  const std::vector<Tensor> inputs{Tensor::random(DType::bf16, {1, 1, 6 * 64}, 1),
                                   Tensor::random(DType::bf16, {1, 600, 2 * 64}, 2),
                                   Tensor::random(DType::bf16, {1, 600, 2 * 64}, 3), offset_of(580)};
  const int held = threads();
  const Tensor expected = run_op("attention_cached", inputs, attrs).outputs[0];
  for (int team : {1, 3, 4}) {
    set_threads(team);
    expect_same_bytes(run_op("attention_cached", inputs, attrs).outputs[0], expected);
  }
  set_threads(held);
}

// Offsets from a broken caller: nothing outside the cache is read or written, and nothing hangs.
TEST(AttentionCached, HostileOffsetsStayInside) {
  const Attrs attrs{{"heads", int64_t{2}}, {"kv_heads", int64_t{1}}};
  for (int64_t rows : {1, 5})
    for (int32_t offset : {-2147483647 - 1, -3, 10, 12, 2147483647}) {
      const std::vector<Tensor> inputs{Tensor::random(DType::f32, {1, rows, 32}, 1),
                                       Tensor::random(DType::f32, {1, 10, 16}, 2),
                                       Tensor::random(DType::f32, {1, 10, 16}, 3), offset_of(offset)};
      for (const std::string& implementation : implementations("attention_cached", inputs, attrs)) {
        const Tensor o = run_op("attention_cached", inputs, attrs, {implementation}).outputs[0];
        for (int64_t i = 0; i < o.count(); ++i) ASSERT_TRUE(std::isfinite(o.at(i))) << implementation << offset;
      }
    }
}

}  // namespace
}  // namespace headroom::op_test
