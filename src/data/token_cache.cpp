#include "data/token_cache.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "data/token_cache_format.h"

namespace headroom {
namespace {

constexpr int64_t kEntry = sizeof(TokenCacheEntry);

[[noreturn]] void corrupt(const std::filesystem::path& path, const std::string& problem) {
  throw Error(ErrorKind::format, fmt::format("the token cache {} is corrupt: {}", path.string(), problem),
              "delete it; it is rebuilt from the data");
}

TokenCacheHeader read_header(const File& file) {
  const auto& path = file.path();
  const int64_t size = file.size();
  TokenCacheHeader header{};
  if (size < static_cast<int64_t>(sizeof header)) corrupt(path, fmt::format("{} bytes are too few", size));
  file.read_at(0, std::as_writable_bytes(std::span(&header, 1)));
  if (header.magic != kTokenCacheMagic) corrupt(path, "it does not begin with HRTOKEN1");
  if (header.version != kTokenCacheVersion)
    throw Error(ErrorKind::format,
                fmt::format("the token cache {} has version {}, this program reads version {}", path.string(),
                            header.version, kTokenCacheVersion),
                "delete it; it is rebuilt from the data");
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(&header, 1)).first(offsetof(TokenCacheHeader, checksum)));
  if (checksum.value() != header.checksum) corrupt(path, "the header's checksum is wrong");
  if (header.file_bytes != size) corrupt(path, fmt::format("it has {} bytes, {} expected", size, header.file_bytes));
  const bool sane = (header.id_bytes == 2 || header.id_bytes == 4) && header.max_seq_length >= 1 &&
                    header.max_seq_length <= INT32_MAX && header.vocab_size >= 1 && header.vocab_size <= INT32_MAX &&
                    header.index_offset >= static_cast<int64_t>(sizeof header) && header.index_offset <= size &&
                    header.labels <= static_cast<uint64_t>(LabelKind::sequence_class) && header.sequences >= 0 &&
                    header.sequences == (size - header.index_offset) / kEntry &&
                    (size - header.index_offset) % kEntry == 0;
  if (!sane) corrupt(path, "the header's values contradict each other");
  return header;
}

// Why an entry is malformed, or nullptr.
const char* entry_problem(const TokenCacheEntry& entry, LabelKind kind, int64_t max_seq_length, int64_t id_bytes,
                          int64_t index_offset) {
  const bool classed = kind == LabelKind::sequence_class;
  if (entry.length < 1 || entry.length > max_seq_length) return "its length";
  const uint32_t most = classed ? 1 : kind == LabelKind::own_position ? entry.length : entry.length - 1;
  if (entry.targets > most) return "its number of targets";
  const bool placed = classed ? entry.ignored == kClassLabel || entry.ignored == kClassOfPair
                              : entry.ignored == kExplicitLabels || entry.ignored <= entry.length;
  if (!placed) return "its ignored positions";
  const int64_t labels = classed                            ? (entry.ignored == kClassOfPair ? 8 : 4)
                         : entry.ignored == kExplicitLabels ? int64_t{4} * entry.length
                                                            : 0;
  const int64_t bytes = stored_ids_bytes(entry.length, id_bytes) + labels;
  if (entry.offset < static_cast<int64_t>(sizeof(TokenCacheHeader)) || entry.offset > index_offset - bytes)
    return "its offset";
  return nullptr;
}

void check_index(const File& file, const TokenCacheHeader& header) {
  std::array<TokenCacheEntry, 1024> block;
  Checksum checksum;
  for (int64_t i = 0; i < header.sequences; i += static_cast<int64_t>(block.size())) {
    const auto count = static_cast<size_t>(std::min(header.sequences - i, static_cast<int64_t>(block.size())));
    file.read_at(header.index_offset + i * kEntry, std::as_writable_bytes(std::span(block).first(count)));
    checksum.add(std::as_bytes(std::span(block).first(count)));
    for (size_t k = 0; k < count; ++k)
      if (const char* what = entry_problem(block[k], static_cast<LabelKind>(header.labels), header.max_seq_length,
                                           header.id_bytes, header.index_offset))
        corrupt(file.path(), fmt::format("{} of sequence {} is impossible", what, i + static_cast<int64_t>(k)));
  }
  if (checksum.value() != header.index_checksum) corrupt(file.path(), "the index's checksum is wrong");
}

LengthHistogram read_lengths(const File& file, const TokenCacheHeader& header) {
  constexpr int64_t bytes = sizeof(TokenCacheLengths);
  if (header.index_offset - bytes < static_cast<int64_t>(sizeof header)) corrupt(file.path(), "its row lengths");
  TokenCacheLengths lengths;
  file.read_at(header.index_offset - bytes, std::as_writable_bytes(std::span(&lengths, 1)));
  if (checksum_of(lengths) != lengths.checksum) corrupt(file.path(), "the checksum of its row lengths is wrong");
  constexpr int64_t most_rows = int64_t{1} << 40, most_tokens = int64_t{1} << 56;
  for (const LengthHistogram::Bin& bin : lengths.bins)
    if (bin.rows < 0 || bin.rows > most_rows || bin.tokens < 0 || bin.tokens > most_tokens)
      corrupt(file.path(), "its row lengths");
  return LengthHistogram(lengths.bins);
}

// ids[i] = the i-th 16-bit value, which are stored in the upper half of the ids' own memory.
void widen(std::span<int32_t> ids) {
  auto* const bytes = reinterpret_cast<std::byte*>(ids.data());
  for (size_t i = 0; i < ids.size(); ++i) {
    uint16_t id = 0;
    std::memcpy(&id, bytes + 2 * ids.size() + 2 * i, sizeof id);
    ids[i] = id;
  }
}

SequenceInfo info_of(const TokenCacheEntry& entry, LabelKind kind) {
  return {entry.length, entry.targets, kind == LabelKind::own_position && entry.ignored != kExplicitLabels};
}

}  // namespace

TokenCache TokenCache::open(const std::filesystem::path& path) { return open(File::open(path)); }

TokenCache TokenCache::open(File file) {
  TokenCache cache;
  cache.file_ = std::move(file);
  const TokenCacheHeader header = read_header(cache.file_);
  check_index(cache.file_, header);
  cache.key_ = header.key;
  cache.max_seq_length_ = header.max_seq_length;
  cache.vocab_size_ = header.vocab_size;
  cache.id_bytes_ = header.id_bytes;
  cache.labels_ = static_cast<LabelKind>(header.labels);
  cache.index_offset_ = header.index_offset;
  cache.file_bytes_ = header.file_bytes;
  cache.counts_ = {header.sequences,   header.tokens,     header.targets,
                   header.rows,        header.empty_rows, header.cut_rows,
                   header.lost_tokens, header.longest,    read_lengths(cache.file_, header)};
  return cache;
}

TokenCacheEntry TokenCache::entry(int64_t i) const {
  HR_CHECK(i >= 0 && i < sequences(), "sequence {} of {}", i, sequences());
  TokenCacheEntry entry{};
  file_.read_at(index_offset_ + i * kEntry, std::as_writable_bytes(std::span(&entry, 1)));
  if (const char* what = entry_problem(entry, labels_, max_seq_length_, id_bytes_, index_offset_))
    corrupt(path(), fmt::format("{} of sequence {} is impossible", what, i));
  return entry;
}

SequenceInfo TokenCache::info(int64_t i) const { return info_of(entry(i), labels_); }

SequenceInfo TokenCache::read(int64_t i, std::span<int32_t> ids, std::span<int32_t> labels) const {
  const TokenCacheEntry found = entry(i);
  HR_CHECK(std::min(ids.size(), labels.size()) >= found.length, "room for {} ids and {} labels, {} needed", ids.size(),
           labels.size(), found.length);
  SequenceInfo info = info_of(found, labels_);
  ids = ids.first(found.length);
  labels = labels.first(found.length);
  const auto stored = std::as_writable_bytes(ids).last(ids.size() * static_cast<size_t>(id_bytes_));
  file_.read_at(found.offset, stored);
  Checksum checksum;
  checksum.add(stored);
  if (id_bytes_ == 2) widen(ids);
  if (found.ignored == kExplicitLabels) {
    file_.read_at(found.offset + stored_ids_bytes(found.length, id_bytes_), std::as_writable_bytes(labels));
    checksum.add(std::as_bytes(labels));
  } else if (labels_ == LabelKind::sequence_class) {
    std::array<int32_t, 2> stored{-1, -1};
    const auto count = size_t{found.ignored == kClassOfPair} + 1;
    file_.read_at(found.offset + stored_ids_bytes(found.length, id_bytes_),
                  std::as_writable_bytes(std::span(stored).first(count)));
    checksum.add(std::as_bytes(std::span(stored).first(count)));
    info.class_label = stored[0];
    info.second = stored[1];
    if (count == 2) check_second(i, stored[1], found.length);
    std::fill(labels.begin(), labels.end(), kIgnoredLabel);
  } else {
    std::fill(labels.begin(), labels.begin() + found.ignored, kIgnoredLabel);
    std::copy(ids.begin() + found.ignored, ids.end(), labels.begin() + found.ignored);
  }
  if (checksum.folded() != found.checksum) corrupt(path(), fmt::format("the checksum of sequence {} is wrong", i));
  for (size_t t = 0; t < ids.size(); ++t)
    if (ids[t] < 0 || ids[t] >= vocab_size_ || labels[t] >= vocab_size_ ||
        (labels[t] < 0 && labels[t] != kIgnoredLabel))
      corrupt(path(), fmt::format("sequence {} holds id {} or label {} outside the vocabulary", i, ids[t], labels[t]));
  if (labels_ == LabelKind::sequence_class && info.class_label < 0)
    corrupt(path(), fmt::format("sequence {} has the class {}", i, info.class_label));
  return info;
}

void TokenCache::check_second(int64_t i, int64_t second, int64_t length) const {
  if (second < 0 || second > length)
    corrupt(path(), fmt::format("the second text of sequence {} begins at {}", i, second));
}

int64_t TokenCache::second_text(int64_t i) const {
  const TokenCacheEntry found = entry(i);
  if (found.ignored != kClassOfPair) return -1;
  int32_t second = 0;
  file_.read_at(found.offset + stored_ids_bytes(found.length, id_bytes_) + 4,
                std::as_writable_bytes(std::span(&second, 1)));
  check_second(i, second, found.length);
  return second;
}

}  // namespace headroom
