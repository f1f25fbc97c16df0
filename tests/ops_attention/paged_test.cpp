// The paged key-value cache: rows of many sequences, whose keys and values are in blocks of one pool. Compared with
// attention over each sequence's own cache, and bitwise with the same rows among others.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "base/error.h"
#include "naive_attention.h"
#include "ops/paged_attention/int8_heads.h"

namespace headroom::op_test {
namespace {

struct PagedCase {
  int64_t heads, kv_heads, dim;
  int64_t window = 0;
  double softcap = 0;
  DType q = DType::f32, kv = DType::f32;
  int64_t block_tokens = 16;

  // dtype of the appended rows.
  DType row() const { return kv == DType::i8 ? DType::f32 : kv; }
  Attrs attrs() const {
    Attrs attrs{{"heads", heads}, {"kv_heads", kv_heads}, {"window", window}};
    if (softcap > 0) attrs.set("softcap", softcap);
    return attrs;
  }
  Attrs paged() const {
    Attrs all = attrs();
    all.set("block_tokens", block_tokens);
    return all;
  }
};

struct Sequence {
  Tensor q, k, v;  // [1, length, width]
  int64_t length() const { return q.type().dims[1]; }
};

Sequence random_sequence(const PagedCase& c, int64_t length, uint64_t seed) {
  const int64_t kv = c.kv_heads * c.dim;
  return {Tensor::random(c.q, {1, length, c.heads * c.dim}, seed, 2),
          Tensor::random(c.row(), {1, length, kv}, seed + 100, 2),
          Tensor::random(c.row(), {1, length, kv}, seed + 200)};
}

struct Codes {
  std::vector<int> codes;
  float scale;
};

// The formula of an int8 pool for `dim` elements starting at `first`.
Codes codes_of(const Tensor& x, int64_t first, int64_t dim) {
  float most = 0;
  for (int64_t i = 0; i < dim; ++i) most = std::max(most, std::fabs(static_cast<float>(x.at(first + i))));
  Codes out{{}, most / 127};
  for (int64_t i = 0; i < dim; ++i) {
    const float value = static_cast<float>(x.at(first + i));
    out.codes.push_back(out.scale > 0 ? static_cast<int>(std::nearbyint(value / out.scale)) : 0);
  }
  return out;
}

// What the pool stores for appended rows.
Tensor kept(const PagedCase& c, const Tensor& rows) {
  if (c.kv != DType::i8) return rows;
  Tensor out(DType::f32, rows.type().dims);
  for (int64_t head = 0; head < rows.count() / c.dim; ++head) {
    const Codes of = codes_of(rows, head * c.dim, c.dim);
    for (int64_t i = 0; i < c.dim; ++i)
      out.as<float>()[head * c.dim + i] = static_cast<float>(of.codes[static_cast<size_t>(i)]) * of.scale;
  }
  return out;
}

struct Row {
  int64_t sequence, position;  // sequence -1: padding
};
using Rows = std::vector<Row>;

// Copies row `from` of a to row `to` of b; both are [.., width] of one type.
void copy(const Tensor& a, int64_t from, const Tensor& b, int64_t to) {
  const auto bytes = static_cast<size_t>(a.type().dims[2] * dtype_bytes(a.type().dtype));
  std::memcpy(b.as<std::byte>() + static_cast<size_t>(to) * bytes,
              a.as<std::byte>() + static_cast<size_t>(from) * bytes, bytes);
}

Tensor integers(const std::vector<int64_t>& dims, const std::vector<int64_t>& values) {
  return Tensor(DType::i32, dims, std::vector<double>(values.begin(), values.end()));
}

// A pool with room for the sequences; `seed` determines where their blocks are.
class Pool {
 public:
  Pool(const PagedCase& c, const std::vector<Sequence>& sequences, uint64_t seed)
      : c_(c), sequences_(sequences), k_(c.kv, {1, 1, 1}), v_(c.kv, {1, 1, 1}) {
    for (const Sequence& s : sequences) blocks_ = std::max(blocks_, (s.length() - 1) / c.block_tokens + 1);
    const int64_t count = static_cast<int64_t>(sequences.size()) * blocks_ + 3;
    std::vector<int64_t> places(static_cast<size_t>(count));
    std::iota(places.begin(), places.end(), 0);
    std::shuffle(places.begin(), places.end(), std::mt19937_64(seed));
    table_.assign(places.begin(), places.end() - 3);
    k_ = v_ = Tensor(c.kv, {1, count * c.block_tokens, c.kv_heads * pool_head_width(c.kv, c.dim)});  // filled with NaN
  }

  // One step: appends the keys and values of the rows, then attends.
  Tensor run(const Rows& rows, const std::string& only) {
    const auto count = static_cast<int64_t>(rows.size());
    Tensor q = Tensor::filled(c_.q, {count, 1, c_.heads * c_.dim}, 1);
    Tensor k = Tensor::filled(c_.row(), {count, 1, c_.kv_heads * c_.dim}, 1), v = k;
    std::vector<int64_t> slots, owners, offsets;
    for (int64_t r = 0; r < count; ++r) {
      const auto [sequence, position] = rows[static_cast<size_t>(r)];
      owners.push_back(sequence), offsets.push_back(position), slots.push_back(slot(sequence, position));
      if (sequence < 0) continue;
      const Sequence& from = sequences_[static_cast<size_t>(sequence)];
      copy(from.q, position, q, r), copy(from.k, position, k, r), copy(from.v, position, v, r);
    }
    k_ = run_op("kv_append_paged", {k, k_, integers({count}, slots)}).outputs[0];
    v_ = run_op("kv_append_paged", {v, v_, integers({count}, slots)}).outputs[0];
    return run_op("attention_paged",
                  {q, k_, v_, integers({static_cast<int64_t>(sequences_.size()), blocks_}, table_),
                   integers({count}, owners), integers({count}, offsets)},
                  c_.paged(), {only})
        .outputs[0];
  }

 private:
  int64_t slot(int64_t sequence, int64_t position) const {
    if (sequence < 0) return -1;
    return table_[static_cast<size_t>(sequence * blocks_ + position / c_.block_tokens)] * c_.block_tokens +
           position % c_.block_tokens;
  }

  PagedCase c_;
  const std::vector<Sequence>& sequences_;
  int64_t blocks_ = 1;
  std::vector<int64_t> table_;
  Tensor k_, v_;
};

// The rows of every sequence, in steps of at most `most` rows; with `mixed`, sequences take turns with padding between
// them.
std::vector<Rows> steps_of(const std::vector<Sequence>& sequences, int64_t most, bool mixed) {
  std::vector<Rows> steps(1);
  const auto add = [&](const Row& row) {
    if (static_cast<int64_t>(steps.back().size()) >= most) steps.emplace_back();
    steps.back().push_back(row);
  };
  const auto count = static_cast<int64_t>(sequences.size());
  const int64_t turn = mixed ? 5 : INT64_MAX / 2;
  std::vector<int64_t> next(sequences.size(), 0);
  for (bool any = true; any;) {
    any = false;
    for (int64_t s = 0; s < count; ++s) {
      int64_t& at = next[static_cast<size_t>(s)];
      const int64_t end = std::min(sequences[static_cast<size_t>(s)].length(), at + turn);
      any = any || at < end;
      for (; at < end; ++at) add({s, at});
      if (mixed) add({-1, -1});
    }
  }
  return steps;
}

// The outputs of all sequences, [1, length, width] each, run in these steps.
std::vector<Tensor> run_steps(const PagedCase& c, const std::vector<Sequence>& sequences,
                              const std::vector<Rows>& steps, uint64_t placement, const std::string& only) {
  Pool pool(c, sequences, placement);
  std::vector<Tensor> outputs;
  for (const Sequence& s : sequences) outputs.emplace_back(c.q, s.q.type().dims);
  for (const Rows& rows : steps) {
    const Tensor o = pool.run(rows, only);
    for (size_t r = 0; r < rows.size(); ++r) {
      if (rows[r].sequence >= 0)
        copy(o, static_cast<int64_t>(r), outputs[static_cast<size_t>(rows[r].sequence)], rows[r].position);
      else
        for (int64_t i = 0; i < c.heads * c.dim; ++i)
          EXPECT_EQ(o.at(static_cast<int64_t>(r) * c.heads * c.dim + i), 0.0);
    }
  }
  return outputs;
}

std::vector<PagedCase> paged_cases() {
  return {{4, 4, 16},
          {8, 2, 64},
          {6, 1, 24, 0, 0, DType::f32, DType::bf16, 4},
          {6, 2, 20, 50, 0, DType::f32, DType::f32, 8},
          {2, 1, 72, 130, 20.0, DType::bf16, DType::bf16, 16},
          {10, 2, 8, 0, 5.0, DType::f16, DType::f16, 3},
          {1, 1, 32, 1, 0, DType::f32, DType::f16, 128},
          {6, 2, 64, 100, 30.0, DType::bf16, DType::bf16, 16},
          {9, 3, 64, 0, 0, DType::bf16, DType::bf16, 16},
          {14, 2, 64, 0, 0, DType::bf16, DType::bf16, 16},
          {5, 5, 96, 0, 0, DType::bf16, DType::bf16, 32},
          {4, 2, 26, 70, 0, DType::bf16, DType::bf16, 5},
          {2, 2, 15, 0, 0, DType::bf16, DType::bf16, 16},
          {2, 1, 256, 0, 0, DType::bf16, DType::bf16, 128},
          {5, 1, 128, 0, 0, DType::f16, DType::f16, 128},
          {4, 1, 64, 0, 0, DType::f32, DType::i8},
          {6, 1, 25, 50, 0, DType::f32, DType::i8, 8},
          {3, 3, 8, 0, 20.0, DType::bf16, DType::i8, 4},
          {2, 1, 200, 30, 0, DType::f32, DType::i8, 128}};
}

std::vector<std::string> implementations(const PagedCase& c) {
  std::vector<std::string> names;
  for (const KernelCandidate& candidate : cpu_kernels().candidates("attention_paged")) {
    const std::string_view name = candidate.implementation;
    if (name == "simd" && !host_facts().capabilities.has(kAvx2)) continue;
    const bool narrow = c.q == DType::bf16 && c.kv == DType::bf16;
    if (name == "amx" && !(host_facts().capabilities.has(kAmx) && narrow)) continue;
    if (name == "bf16" && !(host_facts().capabilities.has(kAvx512Bf16) && narrow)) continue;
    names.emplace_back(name);
  }
  return names;
}

std::vector<Sequence> random_sequences(const PagedCase& c) {
  std::vector<Sequence> sequences;
  for (int64_t length : {37, 300, 1, 129}) sequences.push_back(random_sequence(c, length, sequences.size() * 7 + 1));
  return sequences;
}

TEST(AttentionPaged, IsAttentionOverEachSequencesOwnCache) {
  for (const PagedCase& c : paged_cases()) {
    const std::vector<Sequence> sequences = random_sequences(c);
    for (const std::string& only : implementations(c)) {
      SCOPED_TRACE(fmt::format("{} heads of {}, {}", c.heads, c.dim, only));
      const std::vector<Tensor> found = run_steps(c, sequences, steps_of(sequences, 64, true), 3, only);
      const double limit = c.q == DType::f32 ? 5e-6 : c.q == DType::f16 ? 2e-3 : 1e-2;
      for (size_t s = 0; s < sequences.size(); ++s) {
        const Sequence& in = sequences[s];
        const Tensor expected = run_op("attention_cached", {in.q, kept(c, in.k), kept(c, in.v), integers({1}, {0})},
                                       c.attrs(), {"reference"})
                                    .outputs[0];
        expect_close(found[s], expected, limit, limit);
      }
    }
  }
}

TEST(AttentionPaged, ARowDoesNotDependOnItsCompany) {
  for (const PagedCase& c : paged_cases()) {
    const std::vector<Sequence> sequences = random_sequences(c);
    for (const std::string& only : implementations(c)) {
      SCOPED_TRACE(fmt::format("{} heads of {}, {}", c.heads, c.dim, only));
      const std::vector<Tensor> alone = run_steps(c, sequences, steps_of(sequences, 1, false), 1, only);
      for (int64_t most : {3, 8, 100, 600})
        for (bool mixed : {false, true}) {
          const std::vector<Tensor> found =
              run_steps(c, sequences, steps_of(sequences, most, mixed), static_cast<uint64_t>(most), only);
          for (size_t s = 0; s < sequences.size(); ++s) expect_same_bytes(found[s], alone[s]);
        }
      const int before = threads();
      set_threads(before == 1 ? 3 : 1);
      const std::vector<Tensor> found = run_steps(c, sequences, steps_of(sequences, 100, true), 5, only);
      set_threads(before);
      for (size_t s = 0; s < sequences.size(); ++s) expect_same_bytes(found[s], alone[s]);
    }
  }
}

TEST(AttentionPaged, WhatTablesSayNeverLeadsOutOfThePool) {
  for (const PagedCase& c : {PagedCase{2, 1, 8}, PagedCase{2, 1, 8, 0, 0, DType::bf16, DType::bf16}})
    for (const std::string& only : implementations(c)) {
      const Tensor q = Tensor::random(c.q, {4, 1, 16}, 1), k = Tensor::random(c.kv, {1, 32, 8}, 2);
      const Tensor o = run_op("attention_paged",
                              {q, k, k, integers({2, 2}, {-5, 900, 1, 2147483647}), integers({4}, {0, 1, 2, -3}),
                               integers({4}, {20, 2147483647, 5, 5})},
                              c.paged(), {only})
                           .outputs[0];
      for (int64_t i = 0; i < 32; ++i) EXPECT_TRUE(std::isfinite(o.at(i)));
      for (int64_t i = 32; i < 64; ++i) EXPECT_EQ(o.at(i), 0.0) << "there is no such table";
    }
}

TEST(KvAppendPaged, WritesRowsToTheirSlots) {
  for (DType from : {DType::f32, DType::bf16, DType::f16})
    for (DType to : {DType::f32, DType::bf16, DType::f16}) {
      if (from != to && from != DType::f32 && to != DType::f32) continue;
      const Tensor rows = Tensor::random(from, {5, 1, 8}, 1), pool = Tensor::random(to, {1, 12, 8}, 2);
      const std::vector<int64_t> slots{11, -1, 3, 12, 0};
      const Tensor found = run_op("kv_append_paged", {rows, pool, integers({5}, slots)}).outputs[0];
      for (int64_t i = 0; i < found.count(); ++i) {
        const auto at = std::find(slots.begin(), slots.end(), i / 8);
        Tensor rounded(to, {1});
        rounded.set(0, at == slots.end() ? pool.at(i) : rows.at((at - slots.begin()) * 8 + i % 8));
        EXPECT_EQ(found.at(i), rounded.at(0)) << i;
      }
    }
}

TEST(KvAppendPaged, WritesCodesAndTheirScales) {
  constexpr int64_t kDim = 6, kHeads = 2, kWide = kHeads * (kDim + 4);
  for (DType from : {DType::f32, DType::bf16, DType::f16}) {
    Tensor rows = Tensor::random(from, {4, 1, kHeads * kDim}, 1, 5);
    for (int64_t i = 0; i < kDim; ++i) rows.set(i, 0);        // row 0, head 0: a scale of zero
    const double ties[] = {127, 0.5, 1.5, -2.5, -0.5, -127};  // row 1, head 0: a scale of 1
    for (int64_t i = 0; i < kDim; ++i) rows.set(2 * kDim + i, ties[i]);
    rows.set(7 * kDim, INFINITY);  // row 3, head 1
    const Tensor pool = Tensor::filled(DType::i8, {1, 7, kWide}, 9);
    const std::vector<int64_t> slots{6, 0, -1, 3};
    const Tensor found = run_op("kv_append_paged", {rows, pool, integers({4}, slots)}).outputs[0];
    for (int64_t slot = 0; slot < 7; ++slot) {
      const int8_t* const row = found.as<int8_t>() + slot * kWide;
      const auto at = std::find(slots.begin(), slots.end(), slot);
      if (at == slots.end()) {
        EXPECT_EQ(std::count(row, row + kWide, 9), kWide) << slot;
        continue;
      }
      for (int64_t head = 0; head < kHeads; ++head) {
        const int8_t* const codes = row + head * (kDim + 4);
        if (slot == 3 && head == 1) {
          EXPECT_TRUE(std::isnan(head_scale(codes, kDim)));
          continue;
        }
        const Codes expected = codes_of(rows, ((at - slots.begin()) * kHeads + head) * kDim, kDim);
        EXPECT_EQ(head_scale(codes, kDim), expected.scale);
        for (int64_t i = 0; i < kDim; ++i)
          EXPECT_EQ(codes[i], expected.codes[static_cast<size_t>(i)]) << slot << ' ' << i;
      }
    }
    EXPECT_EQ(std::vector<int>(found.as<int8_t>(), found.as<int8_t>() + kDim),
              (std::vector<int>{127, 0, 2, -2, 0, -127}));
  }
}

TEST(KvAppendPaged, AWideHeadHasOneScale) {
  constexpr int64_t kDim = 600;
  Tensor rows = Tensor::random(DType::f32, {1, 1, kDim}, 1);
  rows.set(300, -50);
  const Tensor pool(DType::i8, {1, 1, kDim + 4});
  const Tensor found = run_op("kv_append_paged", {rows, pool, integers({1}, {0})}).outputs[0];
  const Codes expected = codes_of(rows, 0, kDim);
  EXPECT_EQ(head_scale(found.as<int8_t>(), kDim), 50.0f / 127);
  for (int64_t i = 0; i < kDim; ++i) EXPECT_EQ(found.at(i), expected.codes[static_cast<size_t>(i)]) << i;
}

TEST(KvAppendPaged, RefusesAnInt8PoolWithoutRoomForItsScales) {
  const auto infer = [](int64_t width) {
    const std::vector<Type> types{{DType::f32, {Dim::of(5), Dim::of(1), Dim::of(24)}},
                                  {DType::i8, {Dim::of(1), Dim::of(32), Dim::of(width)}},
                                  {DType::i32, {Dim::of(5)}}};
    return find_op("kv_append_paged").infer(types, {})[0].dtype;
  };
  for (int64_t heads : {1, 2, 3, 24}) EXPECT_EQ(infer(24 + 4 * heads), DType::i8);
  for (int64_t width : {20, 24, 26, 44, 124}) EXPECT_THROW(infer(width), InternalError) << width;
}

TEST(AttentionPaged, ShapeRuleNamesWhatIsWrong) {
  const auto infer = [](int64_t pool, int64_t block_tokens, int64_t owners, DType offset) {
    const auto type = [](DType dtype, const std::vector<int64_t>& dims) {
      Type made{dtype, {}};
      for (int64_t dim : dims) made.shape.push_back(Dim::of(dim));
      return made;
    };
    const std::vector<Type> types{type(DType::bf16, {5, 1, 32}),   type(DType::f32, {1, pool, 16}),
                                  type(DType::f32, {1, pool, 16}), type(DType::i32, {2, 3}),
                                  type(DType::i32, {owners}),      type(offset, {5})};
    return find_op("attention_paged")
        .infer(types, {{"heads", int64_t{4}}, {"kv_heads", int64_t{2}}, {"block_tokens", block_tokens}});
  };
  EXPECT_EQ(infer(32, 16, 5, DType::i32)[0].dtype, DType::bf16);
  EXPECT_THROW(infer(33, 16, 5, DType::i32), InternalError);
  EXPECT_THROW(infer(32, 0, 5, DType::i32), InternalError);
  EXPECT_THROW(infer(32, 16, 4, DType::i32), InternalError);
  EXPECT_THROW(infer(32, 16, 5, DType::f32), InternalError);
}

}  // namespace
}  // namespace headroom::op_test
