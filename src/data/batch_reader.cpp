#include "data/batch_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"

namespace headroom {

BatchReader::BatchReader(const TokenCache& cache, SampleOrder order, int64_t seq_length, int64_t global_batch_size,
                         RowTargets targets, const PackIndex* packs, bool groups)
    : cache_(cache), order_(order), targets_(std::move(targets)), packs_(packs), seq_length_(seq_length) {
  const int64_t samples = packs ? packs->packs() : cache.sequences();
  const int64_t longest = packs ? packs->length() : cache.max_seq_length();
  HR_CHECK(order.sequences() == samples, "an order of {} for {} sequences", order.sequences(), samples);
  HR_CHECK(seq_length >= longest, "rows of {} for sequences of {}", seq_length, longest);
  HR_CHECK(global_batch_size >= 1, "global batch of {}", global_batch_size);
  HR_CHECK(!(packs && groups), "packs are all of about the same length");
  infos_.reserve(static_cast<size_t>(global_batch_size));
  sequences_.reserve(static_cast<size_t>(global_batch_size));
  if (groups) groups_.emplace(cache, order, global_batch_size);
  if (cache.labels() != LabelKind::own_position) return;
  drawn_ids_.resize(static_cast<size_t>(cache.max_seq_length()));
  drawn_labels_.resize(drawn_ids_.size());
}

int64_t BatchReader::memory_bytes(int64_t global_batch_size) {
  return global_batch_size * static_cast<int64_t>(sizeof(SequenceInfo) + sizeof(int64_t));
}

int64_t BatchReader::begin(const SampleRange& range) {
  HR_CHECK(range.count >= 0 && range.count <= static_cast<int64_t>(infos_.capacity()),
           "batch of {} samples, {} expected", range.count, infos_.capacity());
  range_ = range;
  infos_.clear();
  sequences_.clear();
  tokens_ = 0;
  int64_t targets = 0;
  for (int64_t i = 0; i < range.count; ++i) {
    const int64_t sample = range.first + i;
    sequences_.push_back(groups_ ? groups_->at(sample) : order_.at(sample));
    infos_.push_back(info(sample));
    if (infos_.back().unmasked) infos_.back().targets = read_row(sample, drawn_ids_, drawn_labels_).targets;
    tokens_ += infos_.back().length;
    targets += infos_.back().targets;
  }
  return targets;
}

SequenceInfo BatchReader::read_row(int64_t sample, std::span<int32_t> ids, std::span<int32_t> labels) const {
  if (packs_) return read_pack(sample, ids, labels);
  SequenceInfo info = cache_.read(sequence_of(sample), ids, labels);
  const auto length = static_cast<size_t>(info.length);
  info.targets = targets_.place(sample, info, ids.first(length), labels.first(length));
  return info;
}

SequenceInfo BatchReader::read_taken_row(int64_t sample, std::span<int32_t> ids, std::span<int32_t> labels) const {
  const SequenceInfo info = read_row(sample, ids, labels);
  const auto length = static_cast<size_t>(info.length);
  if (!targets_.takes(ids.first(length), labels.first(length)))
    throw Error(ErrorKind::format,
                fmt::format("the token cache {} is not this model's: {} {} holds an id outside the vocabulary or a "
                            "label that nothing is predicted for",
                            cache_.path().string(), packs_ ? "pack" : "sequence", sequence_of(sample)),
                "delete it; it is rebuilt from the data");
  return info;
}

int64_t BatchReader::fill(int64_t first_row, int64_t rows, std::span<int32_t> ids, std::span<int32_t> labels) const {
  const auto row = static_cast<size_t>(row_width(ids.size(), first_row, rows));
  HR_CHECK(labels.size() == ids.size(), "{} ids and {} labels", ids.size(), labels.size());
  int64_t targets = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const auto row_ids = ids.subspan(static_cast<size_t>(i) * row, row);
    const auto row_labels = labels.subspan(static_cast<size_t>(i) * row, row);
    SequenceInfo info;
    if (first_row + i < range_.count) info = read_taken_row(range_.first + first_row + i, row_ids, row_labels);
    std::fill(row_ids.begin() + info.length, row_ids.end(), targets_.pad_id());
    std::fill(row_labels.begin() + info.length, row_labels.end(), kIgnoredLabel);
    targets += info.targets;
  }
  return targets;
}

SequenceInfo BatchReader::info(int64_t sample) const {
  if (!packs_) return cache_.info(sequence_of(sample));
  const PackInfo pack = packs_->info(sequence_of(sample));
  SequenceInfo info;
  info.length = pack.length;
  info.targets = pack.targets;
  return info;
}

// Calls visit(sequence, its first position, its length) for the sequences of a sample's pack.
template <typename Visit>
void BatchReader::for_each_sequence(int64_t sample, Visit visit) const {
  const PackInfo pack = packs_->info(sequence_of(sample));
  std::array<int64_t, 64> block;
  int64_t at = 0;
  for (int64_t from = 0; from < pack.sequences; from += static_cast<int64_t>(block.size())) {
    const auto count = std::min(static_cast<size_t>(pack.sequences - from), block.size());
    packs_->sequences(pack, from, std::span(block).first(count));
    for (size_t i = 0; i < count; ++i) {
      const int64_t length = cache_.info(block[i]).length;
      if (at + length > pack.length)
        throw Error(ErrorKind::format,
                    fmt::format("the packing of {} is corrupt: a pack holds more than its {} tokens",
                                cache_.path().string(), pack.length),
                    "delete it; it is rebuilt from the token cache");
      visit(block[i], at, length);
      at += length;
    }
  }
}

SequenceInfo BatchReader::read_pack(int64_t sample, std::span<int32_t> ids, std::span<int32_t> labels) const {
  SequenceInfo all;
  for_each_sequence(sample, [&](int64_t sequence, int64_t at, int64_t length) {
    const auto first = static_cast<size_t>(at);
    all.targets += cache_.read(sequence, ids.subspan(first), labels.subspan(first)).targets;
    all.length += length;
    labels[first] = kIgnoredLabel;
  });
  return all;
}

void BatchReader::fill_starts(int64_t first_row, int64_t rows, std::span<int32_t> starts) const {
  HR_CHECK(packs_, "rows that are not packed have no starts");
  const auto row = static_cast<size_t>(row_width(starts.size(), first_row, rows));
  for (int64_t i = 0; i < rows; ++i) {
    const auto of_row = starts.subspan(static_cast<size_t>(i) * row, row);
    for (size_t t = 0; t < row; ++t) of_row[t] = static_cast<int32_t>(t);
    if (first_row + i >= range_.count) continue;
    for_each_sequence(range_.first + first_row + i, [&](int64_t, int64_t at, int64_t length) {
      std::fill_n(of_row.begin() + at, length, static_cast<int32_t>(at));
    });
  }
}

void BatchReader::fill_types(int64_t first_row, int64_t rows, std::span<int32_t> types) const {
  HR_CHECK(!packs_, "rows that are packed have no types");
  const auto row = static_cast<size_t>(row_width(types.size(), first_row, rows));
  std::fill(types.begin(), types.end(), 0);
  for (int64_t i = 0; i < rows && first_row + i < range_.count; ++i) {
    const int64_t sample = range_.first + first_row + i, second = cache_.second_text(sequence_of(sample));
    if (second < 0) continue;
    const auto of_row = types.subspan(static_cast<size_t>(i) * row, row);
    std::fill(of_row.begin() + second, of_row.begin() + infos_[static_cast<size_t>(first_row + i)].length, 1);
  }
}

void BatchReader::fill_lengths(int64_t first_row, std::span<int32_t> lengths) const {
  HR_CHECK(first_row >= 0, "rows from {}", first_row);
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto row = static_cast<size_t>(first_row) + i;
    lengths[i] = row < infos_.size() ? static_cast<int32_t>(infos_[row].length) : 0;
  }
}

// Positions of a row if `rows` of them have `elements` in total.
int64_t BatchReader::row_width(size_t elements, int64_t first_row, int64_t rows) const {
  HR_CHECK(first_row >= 0 && rows >= 1, "{} rows from {}", rows, first_row);
  const int64_t width = static_cast<int64_t>(elements) / rows;
  HR_CHECK(static_cast<int64_t>(elements) == width * rows && width <= seq_length_ && width >= longest(first_row, rows),
           "{} rows from {}, the longest of {}, into {} elements", rows, first_row, longest(first_row, rows), elements);
  return width;
}

int64_t BatchReader::longest(int64_t first_row, int64_t rows) const {
  int64_t most = 0;
  for (int64_t i = first_row; i < std::min(first_row + rows, range_.count); ++i)
    most = std::max(most, infos_[static_cast<size_t>(i)].length);
  return most;
}

}  // namespace headroom
