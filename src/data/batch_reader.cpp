#include "data/batch_reader.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace headroom {

BatchReader::BatchReader(const TokenCache& cache, SampleOrder order, int64_t seq_length, int64_t global_batch_size,
                         RowTargets targets)
    : cache_(cache), order_(order), targets_(std::move(targets)), seq_length_(seq_length) {
  HR_CHECK(order.sequences() == cache.sequences(), "an order of {} for {} sequences", order.sequences(),
           cache.sequences());
  HR_CHECK(seq_length >= cache.max_seq_length(), "rows of {} for sequences of {}", seq_length, cache.max_seq_length());
  HR_CHECK(global_batch_size >= 1, "global batch of {}", global_batch_size);
  infos_.reserve(static_cast<size_t>(global_batch_size));
  if (cache.labels() != LabelKind::own_position) return;
  drawn_ids_.resize(static_cast<size_t>(cache.max_seq_length()));
  drawn_labels_.resize(drawn_ids_.size());
}

int64_t BatchReader::memory_bytes(int64_t global_batch_size) {
  return global_batch_size * static_cast<int64_t>(sizeof(SequenceInfo));
}

int64_t BatchReader::begin(const SampleRange& range) {
  HR_CHECK(range.count >= 0 && range.count <= static_cast<int64_t>(infos_.capacity()),
           "batch of {} samples, {} expected", range.count, infos_.capacity());
  range_ = range;
  infos_.clear();
  tokens_ = 0;
  int64_t targets = 0;
  for (int64_t i = 0; i < range.count; ++i) {
    const int64_t sample = range.first + i;
    infos_.push_back(cache_.info(order_.at(sample)));
    if (infos_.back().unmasked) infos_.back().targets = read_row(sample, drawn_ids_, drawn_labels_).targets;
    tokens_ += infos_.back().length;
    targets += infos_.back().targets;
  }
  return targets;
}

SequenceInfo BatchReader::read_row(int64_t sample, std::span<int32_t> ids, std::span<int32_t> labels) const {
  SequenceInfo info = cache_.read(order_.at(sample), ids, labels);
  const auto length = static_cast<size_t>(info.length);
  info.targets = targets_.place(sample, info, ids.first(length), labels.first(length));
  return info;
}

int64_t BatchReader::fill(int64_t first_row, int64_t rows, std::span<int32_t> ids, std::span<int32_t> labels) const {
  const auto row = static_cast<size_t>(seq_length_);
  HR_CHECK(first_row >= 0 && rows >= 0 && ids.size() == static_cast<size_t>(rows) * row && labels.size() == ids.size(),
           "{} rows from {} of {} into {} ids and {} labels", rows, first_row, seq_length_, ids.size(), labels.size());
  int64_t targets = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const auto row_ids = ids.subspan(static_cast<size_t>(i) * row, row);
    const auto row_labels = labels.subspan(static_cast<size_t>(i) * row, row);
    SequenceInfo info;
    if (first_row + i < range_.count) info = read_row(range_.first + first_row + i, row_ids, row_labels);
    std::fill(row_ids.begin() + info.length, row_ids.end(), targets_.pad_id());
    std::fill(row_labels.begin() + info.length, row_labels.end(), kIgnoredLabel);
    targets += info.targets;
  }
  return targets;
}

int64_t BatchReader::longest(int64_t first_row, int64_t rows) const {
  int64_t most = 0;
  for (int64_t i = first_row; i < std::min(first_row + rows, range_.count); ++i)
    most = std::max(most, infos_[static_cast<size_t>(i)].length);
  return most;
}

}  // namespace headroom
