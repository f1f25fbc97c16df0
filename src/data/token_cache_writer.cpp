#include "data/token_cache_writer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "data/token_cache_format.h"
#include "formats/append_file.h"

namespace headroom {
namespace {

std::filesystem::path parent_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

}  // namespace

struct TokenCacheWriter::State {
  // `place` makes the data's file, with a name or without.
  template <typename Place>
  State(Place&& place, const std::filesystem::path& directory, uint64_t key, int64_t max_seq_length, int64_t vocab_size,
        LabelKind labels)
      : data(std::forward<Place>(place)), index(File::create_nameless(directory)) {
    HR_CHECK(max_seq_length >= 1 && max_seq_length <= INT32_MAX && vocab_size >= 1 && vocab_size <= INT32_MAX,
             "sequences of {} ids below {}", max_seq_length, vocab_size);
    header.magic = kTokenCacheMagic;
    header.version = kTokenCacheVersion;
    header.id_bytes = vocab_size <= 65536 ? 2 : 4;
    header.key = key;
    header.max_seq_length = max_seq_length;
    header.vocab_size = vocab_size;
    header.labels = static_cast<uint64_t>(labels);
    data.append(std::as_bytes(std::span(&header, 1)));
  }
  void append_ids(std::span<const int32_t> ids, Checksum& checksum);
  void append_entry(TokenCacheEntry entry);
  LabelKind labels() const { return static_cast<LabelKind>(header.labels); }

  TokenCacheHeader header{};
  Checksum index_checksum;
  AppendFile data;
  AppendFile index;  // appended to `data` at the end
};

TokenCacheWriter::TokenCacheWriter(const std::filesystem::path& path, uint64_t key, int64_t max_seq_length,
                                   int64_t vocab_size, LabelKind labels)
    : state_(std::make_unique<State>(path, parent_of(path), key, max_seq_length, vocab_size, labels)), named_(true) {}

TokenCacheWriter::TokenCacheWriter(Nameless, const std::filesystem::path& directory, uint64_t key,
                                   int64_t max_seq_length, int64_t vocab_size, LabelKind labels)
    : state_(std::make_unique<State>(File::create_nameless(directory), directory, key, max_seq_length, vocab_size,
                                     labels)) {}

TokenCacheWriter::~TokenCacheWriter() = default;

LabelKind TokenCacheWriter::labels() const { return state_->labels(); }

int64_t TokenCacheWriter::targets() const { return state_->header.targets; }

int64_t TokenCacheWriter::memory_bytes() { return static_cast<int64_t>(sizeof(State)) + 4096; }

void TokenCacheWriter::State::append_ids(std::span<const int32_t> ids, Checksum& checksum) {
  HR_CHECK(!ids.empty() && static_cast<int64_t>(ids.size()) <= header.max_seq_length, "a sequence of {} ids",
           ids.size());
  for (const int32_t id : ids) {
    HR_CHECK(id >= 0 && id < header.vocab_size, "id {} of {}", id, header.vocab_size);
    const auto bytes = std::as_bytes(std::span(&id, 1)).first(header.id_bytes);
    checksum.add(bytes);
    data.append(bytes);
  }
  constexpr std::array<std::byte, 4> padding{};
  data.append(std::span(padding).first(static_cast<size_t>(-data.size() & 3)));
}

void TokenCacheWriter::State::append_entry(TokenCacheEntry entry) {
  index_checksum.add_value(entry);
  index.append(std::as_bytes(std::span(&entry, 1)));
  ++header.sequences;
  header.tokens += entry.length;
  header.targets += entry.targets;
  header.longest = std::max<int64_t>(header.longest, entry.length);
}

void TokenCacheWriter::append(std::span<const int32_t> ids, int64_t ignored) {
  const auto length = static_cast<int64_t>(ids.size());
  const bool own = state_->labels() == LabelKind::own_position;
  HR_CHECK(state_->labels() != LabelKind::sequence_class && ignored >= 0 && ignored <= (own ? 0 : length),
           "{} of {} positions ignored", ignored, length);
  const int64_t offset = state_->data.size();
  Checksum checksum;
  state_->append_ids(ids, checksum);
  const int64_t targets = own ? length : length - std::max<int64_t>(1, ignored);
  state_->append_entry({offset, static_cast<uint32_t>(length), static_cast<uint32_t>(std::max<int64_t>(0, targets)),
                        static_cast<uint32_t>(ignored), checksum.folded()});
}

void TokenCacheWriter::append(std::span<const int32_t> ids, std::span<const int32_t> labels) {
  HR_CHECK(ids.size() == labels.size(), "{} ids with {} labels", ids.size(), labels.size());
  const bool shifted = state_->labels() == LabelKind::next_token;
  HR_CHECK(state_->labels() != LabelKind::sequence_class, "{} labels of a class", labels.size());
  const auto scored = std::find_if(labels.begin(), labels.end(), [](int32_t label) { return label != kIgnoredLabel; });
  const auto ignored = scored - labels.begin();
  if (shifted && std::equal(scored, labels.end(), ids.begin() + ignored)) return append(ids, ignored);
  const int64_t offset = state_->data.size();
  Checksum checksum;
  state_->append_ids(ids, checksum);
  checksum.add(std::as_bytes(labels));
  state_->data.append(std::as_bytes(labels));
  const auto targets =
      std::count_if(labels.begin() + shifted, labels.end(), [](int32_t label) { return label != kIgnoredLabel; });
  state_->append_entry(
      {offset, static_cast<uint32_t>(ids.size()), static_cast<uint32_t>(targets), kExplicitLabels, checksum.folded()});
}

void TokenCacheWriter::append_class(std::span<const int32_t> ids, int32_t label, int64_t second) {
  HR_CHECK(state_->labels() == LabelKind::sequence_class && label >= 0, "the class {}", label);
  HR_CHECK(second >= -1 && second <= static_cast<int64_t>(ids.size()), "a second text at {} of {}", second, ids.size());
  const int64_t offset = state_->data.size();
  Checksum checksum;
  state_->append_ids(ids, checksum);
  const std::array<int32_t, 2> stored{label, static_cast<int32_t>(second)};
  const auto bytes = std::as_bytes(std::span(stored).first(second < 0 ? 1 : 2));
  checksum.add(bytes);
  state_->data.append(bytes);
  state_->append_entry(
      {offset, static_cast<uint32_t>(ids.size()), 1, second < 0 ? kClassLabel : kClassOfPair, checksum.folded()});
}

DataCounts TokenCacheWriter::finish(const DataCounts& counts) {
  State& state = *state_;
  TokenCacheHeader& header = state.header;
  state.index.flush();
  constexpr std::array<std::byte, 8> padding{};
  state.data.append(std::span(padding).first(static_cast<size_t>(-state.data.size() & 7)));
  TokenCacheLengths lengths{counts.lengths.bins(), 0};
  lengths.checksum = checksum_of(lengths);
  state.data.append(std::as_bytes(std::span(&lengths, 1)));
  header.index_offset = state.data.size();
  std::array<std::byte, 4096> block;
  for (int64_t offset = 0; const int64_t n = state.index.file().read_some_at(offset, block); offset += n)
    state.data.append(std::span(block).first(static_cast<size_t>(n)));
  state.data.flush();
  header.file_bytes = state.data.size();
  header.rows = counts.rows;
  header.empty_rows = counts.empty_rows;
  header.cut_rows = counts.cut_rows;
  header.lost_tokens = counts.lost_tokens;
  header.index_checksum = state.index_checksum.value();
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(&header, 1)).first(offsetof(TokenCacheHeader, checksum)));
  header.checksum = checksum.value();
  state.data.file().write_at(0, std::as_bytes(std::span(&header, 1)));
  if (named_) state.data.keep();
  return {header.sequences, header.tokens,      header.targets, header.rows,   header.empty_rows,
          header.cut_rows,  header.lost_tokens, header.longest, counts.lengths};
}

File TokenCacheWriter::take() {
  HR_CHECK(!named_, "the file of {} has a name", state_->data.file().path().string());
  return state_->data.take();
}

}  // namespace headroom
