// Builds the token cache from data files, streamed once before step 0; bad rows are reported here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "data/chat_renderer.h"
#include "data/class_names.h"
#include "data/token_cache.h"
#include "tokenizer/tokenizer.h"

namespace headroom {

constexpr int64_t kRowLimitBytes = int64_t{16} << 20;

struct DataOptions {
  std::vector<std::filesystem::path> files;  // .txt, .jsonl, .json, .tsv
  int64_t max_seq_length = 512;
  int64_t vocab_size = 0;                    // of the model: ids at or above it are refused
  int64_t row_limit_bytes = kRowLimitBytes;  // a longer row is refused
  // The tokenizer's folder or .gguf, with the chat template for rows with messages (data/chat_template.h) and the mask
  // token for texts that are masked (data/mask_tokens.h).
  std::filesystem::path tokenizer_folder = {};
  LabelKind labels = LabelKind::next_token;       // what the model predicts
  ClassNames classes = {};                        // for sequence_class
  int64_t token_types = 2;                        // of the model; with one, both texts have the same type
  int64_t chat_bytes = ChatRenderer::kMostBytes;  // heap for rendering conversations
};

// Called now and then with the bytes read and the total; may throw to stop.
using DataProgress = std::function<void(int64_t bytes_read, int64_t bytes_total)>;

// Hash of a cache's inputs: each file's name, size and modification time, the tokenizer's identity, the options, and
// the chat template. `tokenizer` may be null for rows of {"input_ids", "labels"}. Throws Error(usage) for a missing or
// unsupported file.
uint64_t token_cache_key(const DataOptions& options, const Tokenizer* tokenizer);

// Tokenises all files into `cache_path`. Throws Error(usage | format) naming file, row and remedy for bad data,
// Error(run) on I/O errors (disk full); nothing is left then. Data without any scored token is refused.
DataCounts build_token_cache(const DataOptions& options, const Tokenizer* tokenizer,
                             const std::filesystem::path& cache_path, const DataProgress& progress = {});

// The same into an unnamed file in `directory` (base/nameless_file.h): no other process finds it, and it is gone when
// its last descriptor is closed.
TokenCache build_nameless_token_cache(const DataOptions& options, const Tokenizer* tokenizer,
                                      const std::filesystem::path& directory);

// Opens `cache_path` if it is complete and its key is that of the options, else builds it. `reused` (nullable) receives
// which.
TokenCache open_or_build_token_cache(const DataOptions& options, const Tokenizer* tokenizer,
                                     const std::filesystem::path& cache_path, bool* reused = nullptr,
                                     const DataProgress& progress = {});

// A bound on the heap that building a cache holds at once, for any data and tokenizer (without the tokenizer's tables;
// rows with messages need `chat_bytes` in addition).
int64_t data_memory_bytes(int64_t max_seq_length);

}  // namespace headroom
