// Writes a token cache in one pass with fixed buffers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "data/token_cache.h"
#include "formats/file.h"

namespace headroom {

// Used by one thread. Writes to a temporary name; finish() fsyncs and renames. Without it the destructor removes the
// file.
class TokenCacheWriter {
 public:
  // ids must be below `vocab_size`. Throws Error(run) when the file cannot be created.
  TokenCacheWriter(const std::filesystem::path& path, uint64_t key, int64_t max_seq_length, int64_t vocab_size,
                   LabelKind labels = LabelKind::next_token);
  // The same in an unnamed file in `directory`; take() returns it.
  enum class Nameless { yes };
  TokenCacheWriter(Nameless, const std::filesystem::path& directory, uint64_t key, int64_t max_seq_length,
                   int64_t vocab_size, LabelKind labels = LabelKind::next_token);
  ~TokenCacheWriter();

  // Appends a sequence of 1 .. max_seq_length ids, of which the first `ignored` positions are not scored and the others
  // are their own labels; for own_position, one whose tokens are masked when it is read (`ignored` is 0).
  void append(std::span<const int32_t> ids, int64_t ignored);
  // Appends a sequence with a label per position.
  void append(std::span<const int32_t> ids, std::span<const int32_t> labels);
  // Appends a sequence with a class >= 0; `second`: the start of the second of two texts, -1 if there is only one.
  void append_class(std::span<const int32_t> ids, int32_t label, int64_t second = -1);
  // Completes the cache. `counts` gives rows, empty_rows, cut_rows and lost_tokens; the rest is counted here. Returns
  // all counts.
  DataCounts finish(const DataCounts& counts);
  // The finished file, which has no name.
  File take();

  LabelKind labels() const;
  // Scored tokens so far.
  int64_t targets() const;

  // Heap bytes of a writer.
  static int64_t memory_bytes();

 private:
  struct State;
  std::unique_ptr<State> state_;
  bool named_ = false;
};

}  // namespace headroom
