// The token cache: every training sequence as token ids in one binary file, with an index (docs/token_cache_format.md).
// Read by pread: memory does not depend on the amount of data.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "data/length_histogram.h"
#include "formats/file.h"

namespace headroom {

// A position with this label is not scored.
inline constexpr int32_t kIgnoredLabel = -100;

// The labels of a cache's sequences: the label of position t is predicted from the positions before it; or at t itself,
// and a sequence without explicit labels has its tokens masked when it is read; or the sequence has a class.
enum class LabelKind : uint32_t { next_token, own_position, sequence_class };

// Counts of one pass over the data. Stored in the cache's header.
struct DataCounts {
  int64_t sequences = 0;
  int64_t tokens = 0;       // ids kept, over all sequences
  int64_t targets = 0;      // scored: positions whose label is not -100 (t >= 1 where t - 1 predicts it), tokens that
                            // may be masked, or classes
  int64_t rows = 0;         // rows read, empty ones included; 1 per .txt file
  int64_t empty_rows = 0;   // skipped
  int64_t cut_rows = 0;     // longer than the sequence length
  int64_t lost_tokens = 0;  // by cutting
  int64_t longest = 0;      // tokens of the longest sequence kept
  LengthHistogram lengths = {};  // of the rows before they were cut; without .txt files, which are cut without loss
  bool operator==(const DataCounts&) const = default;
};

struct SequenceInfo {
  int64_t length = 0;        // tokens
  int64_t targets = 0;       // as in DataCounts
  bool unmasked = false;     // own_position: the labels are the ids, none of which is masked yet
  int32_t class_label = -1;  // sequence_class; set only by read()
  int64_t second = -1;       // start of the second of two texts, up to `length`; -1: none; set only by read()
};

struct TokenCacheEntry;

// A finished cache. Const and thread-safe.
class TokenCache {
 public:
  // Checks header, size and index. Throws Error(usage) when missing, Error(format) when corrupt or of another version
  // (remedy: delete it).
  static TokenCache open(const std::filesystem::path& path);
  // The same for an open file.
  static TokenCache open(File file);

  const std::filesystem::path& path() const { return file_.path(); }
  // The key of the inputs that it was made from (token_cache_key).
  uint64_t key() const { return key_; }
  int64_t sequences() const { return counts_.sequences; }
  int64_t max_seq_length() const { return max_seq_length_; }
  const DataCounts& counts() const { return counts_; }
  LabelKind labels() const { return labels_; }
  int64_t file_bytes() const { return file_bytes_; }

  // 0 <= i < sequences(). No heap allocation. Throws Error(format) when the entry is corrupt, Error(run) on an I/O
  // error.
  SequenceInfo info(int64_t i) const;
  // Fills ids[0, length) and labels[0, length) (not shifted; -100 is ignored; of a class all are -100) and returns the
  // entry; both spans hold at least `length` elements. No heap allocation. Errors as info().
  SequenceInfo read(int64_t i, std::span<int32_t> ids, std::span<int32_t> labels) const;
  // The start of the second of two texts in a sequence; -1: there is one text. No heap allocation. Errors as info().
  int64_t second_text(int64_t i) const;

 private:
  TokenCacheEntry entry(int64_t i) const;
  void check_second(int64_t i, int64_t second, int64_t length) const;

  File file_;
  uint64_t key_ = 0;
  int64_t max_seq_length_ = 0;
  int64_t vocab_size_ = 0;
  int64_t id_bytes_ = 4;
  LabelKind labels_ = LabelKind::next_token;
  int64_t index_offset_ = 0;
  int64_t file_bytes_ = 0;
  DataCounts counts_;
};

}  // namespace headroom
