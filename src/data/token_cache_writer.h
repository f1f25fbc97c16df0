// Writes a token cache in one pass with fixed buffers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "data/token_cache.h"
#include "formats/file.h"

namespace headroom {

// Used by one thread. Writes beside the final name; finish() fsyncs and renames. Without it the destructor removes what
// was written.
class TokenCacheWriter {
 public:
  // ids must be below `vocab_size`. Throws Error(run) when the file cannot be created.
  TokenCacheWriter(const std::filesystem::path& path, uint64_t key, int64_t max_seq_length, int64_t vocab_size,
                   LabelKind labels = LabelKind::next_token);
  // The same in a file of `directory` that has no name; take() gives it.
  enum class Nameless { yes };
  TokenCacheWriter(Nameless, const std::filesystem::path& directory, uint64_t key, int64_t max_seq_length,
                   int64_t vocab_size, LabelKind labels = LabelKind::next_token);
  ~TokenCacheWriter();

  // Appends a sequence of 1 .. max_seq_length ids whose first `ignored` positions are not scored and whose others are
  // their own labels; of own_position, one whose tokens are masked when it is read (`ignored` is 0).
  void append(std::span<const int32_t> ids, int64_t ignored);
  // Appends a sequence with a label per position.
  void append(std::span<const int32_t> ids, std::span<const int32_t> labels);
  // Appends a sequence with a class >= 0; `second`: where the second of two texts begins, -1 where there is one.
  void append_class(std::span<const int32_t> ids, int32_t label, int64_t second = -1);
  // Makes the cache complete. `counts` gives rows, empty_rows, cut_rows and lost_tokens; the rest is counted here.
  // Returns all.
  DataCounts finish(const DataCounts& counts);
  // The finished file without a name.
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
