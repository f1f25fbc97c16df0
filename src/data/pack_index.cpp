#include "data/pack_index.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "data/best_fit.h"
#include "data/token_cache_format.h"
#include "formats/atomic_dir.h"

namespace headroom {
namespace {

constexpr uint64_t kMagic = 0x314b434150524848u;  // "HHRPACK1"

struct Header {
  uint64_t magic;
  uint64_t key;
  int64_t length;
  int64_t sequences;
  int64_t packs;
  uint64_t list_checksum;  // of the entries after the header
  uint64_t checksum;       // of all before
};
static_assert(sizeof(Header) == 56);

struct Entry {
  int64_t first;
  uint32_t sequences;
  uint32_t length;
  uint32_t targets;
  uint32_t reserved;
};
static_assert(sizeof(Entry) == 24);

constexpr int64_t kId = sizeof(int64_t);
constexpr int64_t kEntry = sizeof(Entry);

[[noreturn]] void corrupt(const std::filesystem::path& path, const std::string& problem) {
  throw Error(ErrorKind::format, fmt::format("the packing {} is corrupt: {}", path.string(), problem),
              "delete it; it is rebuilt from the token cache");
}

uint64_t header_checksum(const Header& header) {
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, checksum)));
  return checksum.value();
}

int64_t entries_at(int64_t sequences) { return static_cast<int64_t>(sizeof(Header)) + sequences * kId; }

// Packs window after window and writes each at once; the list of sequences gets its final size first.
class Builder {
 public:
  Builder(const TokenCache& cache, const SampleOrder& order, int64_t length, File& file)
      : cache_(cache), order_(order), length_(length), file_(file) {}

  void run() {
    for (int64_t begin = 0; begin < cache_.sequences(); begin += PackIndex::kWindow)
      add_window(begin, std::min(PackIndex::kWindow, cache_.sequences() - begin));
  }
  int64_t packs() const { return packs_; }
  uint64_t checksum() const { return checksum_.value(); }

 private:
  void add_window(int64_t begin, int64_t count) {
    const auto size = static_cast<size_t>(count);
    ids_.resize(size), lengths_.resize(size), targets_.resize(size), bin_of_.resize(size);
    for (size_t i = 0; i < size; ++i) {
      ids_[i] = order_.at(begin + static_cast<int64_t>(i));
      const SequenceInfo info = cache_.info(ids_[i]);
      lengths_[i] = static_cast<int32_t>(info.length);
      targets_[i] = static_cast<uint32_t>(info.targets);
    }
    const int32_t bins = best_fit_decreasing(lengths_, static_cast<int32_t>(length_), bin_of_);
    entries_.assign(static_cast<size_t>(bins), {});
    sort_by_bin(begin, size);
    const auto list = std::as_bytes(std::span(sorted_)), entries = std::as_bytes(std::span(entries_));
    file_.write_at(static_cast<int64_t>(sizeof(Header)) + begin * kId, list);
    file_.write_at(entries_at(cache_.sequences()) + packs_ * kEntry, entries);
    checksum_.add(entries);
    packs_ += bins;
  }

  // Fills the entries, and the window's sequences pack by pack, in their order within a pack.
  void sort_by_bin(int64_t begin, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      Entry& entry = entries_[static_cast<size_t>(bin_of_[i])];
      ++entry.sequences;
      entry.length += static_cast<uint32_t>(lengths_[i]);
      entry.targets += targets_[i];
    }
    int64_t first = begin;
    for (Entry& entry : entries_) {
      entry.first = first;
      first += entry.sequences;
    }
    sorted_.resize(size);
    next_.assign(entries_.size(), 0);
    for (size_t i = 0; i < size; ++i) {
      const auto bin = static_cast<size_t>(bin_of_[i]);
      sorted_[static_cast<size_t>(entries_[bin].first - begin + next_[bin]++)] = ids_[i];
    }
  }

  const TokenCache& cache_;
  const SampleOrder& order_;
  int64_t length_;
  File& file_;
  int64_t packs_ = 0;
  Checksum checksum_;
  std::vector<int64_t> ids_, sorted_;
  std::vector<int32_t> lengths_, bin_of_, next_;
  std::vector<uint32_t> targets_;
  std::vector<Entry> entries_;
};

uint64_t key_of(const TokenCache& cache, const SampleOrder& order, int64_t length) {
  Checksum key;
  key.add_value(kMagic);
  key.add_value(cache.key());
  key.add_value(length);
  key.add_value(int64_t{order.shuffles()});
  key.add_value(order.seed());
  return key.value();
}

}  // namespace

PackIndex PackIndex::open_or_build(const TokenCache& cache, const SampleOrder& order, int64_t length,
                                   const std::filesystem::path& path) {
  HR_CHECK(cache.labels() == LabelKind::next_token && length >= cache.max_seq_length() && length <= INT32_MAX &&
               order.sequences() == cache.sequences(),
           "packing sequences of up to {} tokens into {}", cache.max_seq_length(), length);
  const uint64_t key = key_of(cache, order, length);
  std::error_code status;
  if (std::filesystem::exists(path, status)) {
    try {
      PackIndex found = open(path);
      if (found.key_ == key && found.sequences_ == cache.sequences()) return found;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::format) throw;  // a damaged file is rebuilt
    }
  }
  build(cache, order, length, key, path);
  return open(path);
}

void PackIndex::build(const TokenCache& cache, const SampleOrder& order, int64_t length, uint64_t key,
                      const std::filesystem::path& path) {
  const std::filesystem::path temporary = temporary_beside(path);
  try {
    File file = File::create(temporary);
    Builder builder(cache, order, length, file);
    builder.run();
    Header header{kMagic, key, length, cache.sequences(), builder.packs(), builder.checksum(), 0};
    header.checksum = header_checksum(header);
    file.write_at(0, std::as_bytes(std::span(&header, 1)));
    file.sync();
    file.close();
    rename_durably(temporary, path);
  } catch (...) {
    std::error_code status;
    std::filesystem::remove(temporary, status);
    throw;
  }
}

PackIndex PackIndex::open(const std::filesystem::path& path) {
  PackIndex index;
  index.file_ = File::open(path);
  const int64_t size = index.file_.size();
  Header header{};
  if (size < static_cast<int64_t>(sizeof header)) corrupt(path, fmt::format("{} bytes are too few", size));
  index.file_.read_at(0, std::as_writable_bytes(std::span(&header, 1)));
  if (header.magic != kMagic || header.checksum != header_checksum(header)) corrupt(path, "its header");
  if (header.sequences < 1 || header.packs < 1 || header.packs > header.sequences || header.length < 1 ||
      header.length > INT32_MAX || header.sequences > size / kId || header.packs > size / kEntry ||
      size != entries_at(header.sequences) + header.packs * kEntry)
    corrupt(path, "the header's values contradict each other");
  std::array<Entry, 1024> block;
  Checksum checksum;
  for (int64_t i = 0; i < header.packs; i += static_cast<int64_t>(block.size())) {
    const auto count = static_cast<size_t>(std::min(header.packs - i, static_cast<int64_t>(block.size())));
    const auto bytes = std::as_writable_bytes(std::span(block).first(count));
    index.file_.read_at(entries_at(header.sequences) + i * kEntry, bytes);
    checksum.add(bytes);
  }
  if (checksum.value() != header.list_checksum) corrupt(path, "the checksum of its entries is wrong");
  index.key_ = header.key;
  index.length_ = header.length;
  index.packs_ = header.packs;
  index.sequences_ = header.sequences;
  return index;
}

PackInfo PackIndex::info(int64_t pack) const {
  HR_CHECK(pack >= 0 && pack < packs_, "pack {} of {}", pack, packs_);
  Entry entry{};
  file_.read_at(entries_at(sequences_) + pack * kEntry, std::as_writable_bytes(std::span(&entry, 1)));
  if (entry.sequences < 1 || entry.length > length_ || entry.sequences > entry.length || entry.first < 0 ||
      entry.first > sequences_ - entry.sequences)
    corrupt(file_.path(), fmt::format("pack {} is impossible", pack));
  return {entry.first, entry.sequences, entry.length, entry.targets};
}

void PackIndex::sequences(const PackInfo& pack, int64_t from, std::span<int64_t> into) const {
  HR_CHECK(from >= 0 && from + static_cast<int64_t>(into.size()) <= pack.sequences, "{} sequences from {} of {}",
           into.size(), from, pack.sequences);
  file_.read_at(static_cast<int64_t>(sizeof(Header)) + (pack.first + from) * kId, std::as_writable_bytes(into));
  for (int64_t id : into)
    if (id < 0 || id >= sequences_) corrupt(file_.path(), fmt::format("it lists sequence {} of {}", id, sequences_));
}

int64_t PackIndex::memory_bytes(int64_t length) {
  // For a window, with the growth of vectors: ids twice, lengths, bins, targets, and at most as many entries and
  // chains.
  constexpr int64_t per_item = 2 * 8 + 3 * 4 + 24 + 3 * 4;
  return 2 * kWindow * per_item + (length + 2) * 16;
}

}  // namespace headroom
