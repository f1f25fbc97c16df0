// Fills padded micro-batches of a global batch from the token cache.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/row_targets.h"
#include "data/sample_order.h"
#include "data/token_cache.h"

namespace headroom {

// Used by one thread; `cache` outlives it. No heap allocation after construction.
class BatchReader {
 public:
  // Rows are padded to `seq_length` >= cache.max_seq_length(). Batches hold at most `global_batch_size` samples.
  BatchReader(const TokenCache& cache, SampleOrder order, int64_t seq_length, int64_t global_batch_size,
              RowTargets targets = {});

  // Heap bytes of a reader; where tokens are masked a row of ids and one of labels come on top.
  static int64_t memory_bytes(int64_t global_batch_size);

  // Makes `range` the current global batch and returns its number of target tokens (what its loss is divided by; may be
  // 0).
  int64_t begin(const SampleRange& range);

  // Fills rows [first_row, first_row + rows) of the current batch, each seq_length long, into ids and labels (rows x
  // seq_length, row-major). Padding is RowTargets::pad_id() with label -100; rows past the end of the batch are all
  // padding. Labels are not shifted. Returns the target tokens of these rows.
  int64_t fill(int64_t first_row, int64_t rows, std::span<int32_t> ids, std::span<int32_t> labels) const;

  // Tokens of the longest of these rows in the current batch; 0 when all are past its end.
  int64_t longest(int64_t first_row, int64_t rows) const;
  // Tokens (padding excluded) of the current batch.
  int64_t tokens() const { return tokens_; }
  const SampleRange& range() const { return range_; }
  int64_t seq_length() const { return seq_length_; }

 private:
  // A sequence as the row of a global sample.
  SequenceInfo read_row(int64_t sample, std::span<int32_t> ids, std::span<int32_t> labels) const;

  const TokenCache& cache_;
  SampleOrder order_;
  RowTargets targets_;
  int64_t seq_length_;
  SampleRange range_;
  int64_t tokens_ = 0;
  std::vector<SequenceInfo> infos_;                // of the current batch's rows
  std::vector<int32_t> drawn_ids_, drawn_labels_;  // a row whose masked tokens are counted
};

}  // namespace headroom
