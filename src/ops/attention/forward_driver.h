// How forward attention is cut into tasks, tiles and strips; the arithmetic of a strip is the engine's.
//
// An Engine is built per thread from (const ForwardCall&, std::byte* block) and has
//   static int64_t bytes(const AttentionShape&)                        bytes of its block
//   static constexpr int64_t kKeys                                     keys of a tile, a multiple of 32
//   void announce(const RowsAhead& q, const RowsAhead& o)              hint: q of the next task, o of this one
//   void load_queries(int64_t lane, const void* q, int64_t rows, int64_t scores)   starts a strip of at most kStrip
//                                                                      queries; `scores` is its first row of scores
//   void load_keys(const void* k, const void* v, int64_t count)        the tile of the next steps
//   void step(int64_t lane, const StripStep&)                          one strip with (a part of) the tile
//   void store(int64_t lane, void* o, float* lse, int64_t rows)        ends the strip; lse may be null
// Online softmax after FlashAttention-2 (Dao 2023). A strip is always computed with the same tiles in the same order,
// so its result depends neither on the team nor on the batch.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/threads.h"
#include "ops/attention/rows_ahead.h"
#include "ops/attention/score_dropout.h"
#include "ops/attention/scratch.h"
#include "ops/attention/shape.h"

namespace headroom {

struct ForwardCall {
  AttentionShape shape;
  int64_t first = 0;  // position of query 0
  DType q_dtype = DType::f32;
  DType kv_dtype = DType::f32;
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* o = nullptr;     // of q's dtype
  float* lse = nullptr;  // may be null
  std::byte* scratch = nullptr;
  RowMask mask = {};
  ScoreDropout dropout = {};
};

// The rows [begin, end) of the tile with a strip; column c sees rows [visible_begin + c, visible_end + c) and, if
// `segmented`, of these only the ones from starts[c].
struct StripStep {
  int64_t tile = 0;  // key of row 0
  int32_t begin = 0;
  int32_t end = 0;
  int32_t visible_begin = 0;
  int32_t visible_end = 0;
  bool masked = false;     // some row of [begin, end) is hidden from some column
  bool segmented = false;  // some of them because of segments
  std::array<int32_t, kStrip> starts{};

  // Whether any of the rows [first, last) is hidden from any column.
  bool hides(int32_t first, int32_t last) const {
    return last > end || visible_end < last || visible_begin + kStrip - 1 > first ||
           (segmented && *std::max_element(starts.begin(), starts.end()) > first);
  }
};

// Far outside every tile, but safe to add a column to.
constexpr int32_t kUnlimited = 1 << 29;

// The step of a strip of `rows` queries from `position` with the `count` keys from `tile`; begin >= end if nothing is
// visible.
inline StripStep strip_step(const AttentionShape& shape, int64_t position, int64_t rows, int64_t tile, int64_t count) {
  const auto relative = [&](int64_t key) {
    return static_cast<int32_t>(std::clamp<int64_t>(key - tile, -kUnlimited, kUnlimited));
  };
  StripStep step;
  step.tile = tile;
  step.end = std::min(relative(shape.keys_end(position + rows - 1)), static_cast<int32_t>(count));
  step.begin = std::max(0, relative(shape.keys_begin(position))) / 32 * 32;
  step.visible_end = shape.causal ? relative(position + 1) : kUnlimited;
  step.visible_begin = shape.window > 0 ? relative(position - shape.window + 1) : -kUnlimited;
  step.segmented = shape.starts && relative(shape.segment_begin(position + rows - 1)) > step.begin;
  if (step.segmented)
    for (int64_t column = 0; column < kStrip; ++column)
      step.starts[static_cast<size_t>(column)] = relative(shape.segment_begin(position + std::min(column, rows - 1)));
  step.masked = step.segmented || step.visible_end < step.end || step.visible_begin + kStrip - 1 > step.begin;
  return step;
}

// Consecutive strips of some heads that share a kv head.
struct ForwardTask {
  int64_t row = 0;  // of the batch
  int64_t kv_head = 0;
  int64_t head = 0;
  int64_t heads = 0;
  int64_t query = 0;
  int64_t queries = 0;
};

class ForwardTasks {
 public:
  explicit ForwardTasks(const AttentionShape& shape) : shape_(shape), grid_(lane_grid(shape)) {
    chunks_ = (shape.group() + grid_.heads - 1) / grid_.heads;
    blocks_ = (shape.queries + grid_.strips * kStrip - 1) / (grid_.strips * kStrip);
  }
  int64_t count() const { return shape_.batch * shape_.kv_heads * chunks_ * blocks_; }
  int64_t strips() const { return grid_.strips; }

  // Long and short blocks alternate, so that every contiguous range of tasks has about the same work.
  ForwardTask at(int64_t index) const {
    const int64_t turn = index % blocks_, chunk = index / blocks_ % chunks_, group = index / blocks_ / chunks_;
    const int64_t block = turn % 2 == 0 ? turn / 2 : blocks_ - 1 - turn / 2;
    ForwardTask task;
    task.row = group / shape_.kv_heads;
    task.kv_head = group % shape_.kv_heads;
    task.head = task.kv_head * shape_.group() + chunk * grid_.heads;
    task.heads = std::min(grid_.heads, shape_.group() - chunk * grid_.heads);
    task.query = block * grid_.strips * kStrip;
    task.queries = std::min(grid_.strips * kStrip, shape_.queries - task.query);
    return task;
  }

 private:
  AttentionShape shape_;
  LaneGrid grid_;
  int64_t chunks_ = 1;
  int64_t blocks_ = 1;
};

// Calls visit(lane, head, first query, rows) for every strip of a task.
template <typename Visit>
void for_each_strip(const ForwardTask& task, int64_t strips, Visit visit) {
  for (int64_t head = 0; head < task.heads; ++head)
    for (int64_t strip = 0; strip * kStrip < task.queries; ++strip)
      visit(head * strips + strip, task.head + head, task.query + strip * kStrip,
            std::min(kStrip, task.queries - strip * kStrip));
}

template <typename Engine>
void run_forward_task(Engine& engine, const ForwardCall& call, const ForwardTask& task, int64_t strips) {
  const AttentionShape shape = call.shape.of_row(call.mask, task.row);
  const int64_t q_bytes = dtype_bytes(call.q_dtype), kv_bytes = dtype_bytes(call.kv_dtype);
  const auto q_offset = [&](int64_t head, int64_t query) {
    return (((task.row * shape.queries + query) * shape.heads) + head) * shape.dim * q_bytes;
  };
  const auto kv_offset = [&](int64_t key) {
    return (((task.row * shape.keys + key) * shape.kv_heads) + task.kv_head) * shape.dim * kv_bytes;
  };
  const auto scores = [&](int64_t head, int64_t query) {
    return (task.row * shape.heads + head) * shape.queries + query;
  };
  for_each_strip(task, strips, [&](int64_t lane, int64_t head, int64_t query, int64_t rows) {
    engine.load_queries(lane, static_cast<const std::byte*>(call.q) + q_offset(head, query), rows, scores(head, query));
  });
  const int64_t position = call.first + task.query;
  const int64_t begin = shape.keys_begin(position) / 32 * 32, end = shape.keys_end(position + task.queries - 1);
  for (int64_t tile = begin; tile < end; tile += Engine::kKeys) {
    const int64_t count = std::min(Engine::kKeys, end - tile);
    engine.load_keys(static_cast<const std::byte*>(call.k) + kv_offset(tile),
                     static_cast<const std::byte*>(call.v) + kv_offset(tile), count);
    for_each_strip(task, strips, [&](int64_t lane, int64_t, int64_t query, int64_t rows) {
      const StripStep step = strip_step(shape, call.first + query, rows, tile, count);
      if (step.begin < step.end) engine.step(lane, step);
    });
  }
  for_each_strip(task, strips, [&](int64_t lane, int64_t head, int64_t query, int64_t rows) {
    float* lse = call.lse ? call.lse + scores(head, query) : nullptr;
    engine.store(lane, static_cast<std::byte*>(call.o) + q_offset(head, query), lse, rows);
  });
}

// The task's rows of q or o, for prefetching.
inline RowsAhead rows_of_task(const ForwardCall& call, const ForwardTask& task, const void* base) {
  const AttentionShape& shape = call.shape;
  const int64_t head_bytes = shape.dim * dtype_bytes(call.q_dtype);
  const int64_t offset = ((task.row * shape.queries + task.query) * shape.heads + task.head) * head_bytes;
  return {static_cast<const std::byte*>(base) + offset, shape.heads * head_bytes, task.queries,
          task.heads * head_bytes};
}

template <typename Engine>
void run_forward(const ForwardCall& call) {
  const ForwardTasks tasks(call.shape);
  const int64_t bytes = Engine::bytes(call.shape);
  parallel_for(tasks.count(), 1, [&](int64_t begin, int64_t end, int thread) {
    Engine engine(call, call.scratch + thread * bytes);
    for (int64_t index = begin; index < end; ++index) {
      engine.announce(index + 1 < end ? rows_of_task(call, tasks.at(index + 1), call.q) : RowsAhead(),
                      rows_of_task(call, tasks.at(index), call.o));
      run_forward_task(engine, call, tasks.at(index), tasks.strips());
    }
  });
}

}  // namespace headroom
