// Fills padded micro-batches of a global batch from the token cache.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/pack_index.h"
#include "data/row_targets.h"
#include "data/sample_groups.h"
#include "data/sample_order.h"
#include "data/token_cache.h"

namespace headroom {

// Used by one thread; `cache` and `packs` outlive it. No heap allocation after construction.
class BatchReader {
 public:
  // Rows are padded to `seq_length` >= cache.max_seq_length(). Batches hold at most `global_batch_size` samples. With
  // `packs` a row, and a sample of `order`, is a pack of sequences; with `groups` the rows of a batch are of similar
  // lengths (SampleGroups).
  BatchReader(const TokenCache& cache, SampleOrder order, int64_t seq_length, int64_t global_batch_size,
              RowTargets targets = {}, const PackIndex* packs = nullptr, bool groups = false);

  // Heap bytes of a reader, without those of groups (SampleGroups::memory_bytes()); if tokens are masked, including a
  // row of ids and one of labels.
  static int64_t memory_bytes(int64_t global_batch_size);

  // Makes `range` the current global batch and returns its number of target tokens (what its loss is divided by; may be
  // 0).
  int64_t begin(const SampleRange& range);

  // Fills rows [first_row, first_row + rows) of the current batch into ids and labels, row-major: each of ids.size() /
  // rows positions, no more than seq_length() and no less than longest(). Padding is RowTargets::pad_id() with label
  // -100; rows past the end of the batch are all padding. Labels are not shifted. The first token of a packed sequence
  // has label -100: no token before it may predict it. Returns the target tokens of these rows. Throws Error(format)
  // for a row that the model does not accept (RowTargets::takes).
  int64_t fill(int64_t first_row, int64_t rows, std::span<int32_t> ids, std::span<int32_t> labels) const;

  // For each token of these rows the position at which its packed sequence begins; padding begins at itself.
  void fill_starts(int64_t first_row, int64_t rows, std::span<int32_t> starts) const;

  // For each token of these rows 1 if it belongs to the second of two texts, else 0. Rows are not packed.
  void fill_types(int64_t first_row, int64_t rows, std::span<int32_t> types) const;

  // For each of these rows the tokens before its padding; 0 past the end of the batch.
  void fill_lengths(int64_t first_row, std::span<int32_t> lengths) const;

  // Tokens of the longest of these rows in the current batch; 0 when all are past its end.
  int64_t longest(int64_t first_row, int64_t rows) const;
  // Tokens (padding excluded) of the current batch.
  int64_t tokens() const { return tokens_; }
  const SampleRange& range() const { return range_; }
  int64_t seq_length() const { return seq_length_; }

 private:
  // The sequence or pack of a global sample of the current batch.
  int64_t sequence_of(int64_t sample) const { return sequences_[static_cast<size_t>(sample - range_.first)]; }
  int64_t row_width(size_t elements, int64_t first_row, int64_t rows) const;
  template <typename Visit>
  void for_each_sequence(int64_t sample, Visit visit) const;
  SequenceInfo info(int64_t sample) const;
  SequenceInfo read_pack(int64_t sample, std::span<int32_t> ids, std::span<int32_t> labels) const;
  // A sequence or pack as the row of a global sample.
  SequenceInfo read_row(int64_t sample, std::span<int32_t> ids, std::span<int32_t> labels) const;
  SequenceInfo read_taken_row(int64_t sample, std::span<int32_t> ids, std::span<int32_t> labels) const;

  const TokenCache& cache_;
  SampleOrder order_;
  RowTargets targets_;
  const PackIndex* packs_;
  std::optional<SampleGroups> groups_;
  int64_t seq_length_;
  SampleRange range_;
  int64_t tokens_ = 0;
  std::vector<SequenceInfo> infos_;                // of the current batch's rows
  std::vector<int64_t> sequences_;                 // likewise
  std::vector<int32_t> drawn_ids_, drawn_labels_;  // a row whose masked tokens are counted
};

}  // namespace headroom
