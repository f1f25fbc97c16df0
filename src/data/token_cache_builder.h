// Data files -> token cache, streamed once before step 0; bad rows are reported here.
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
  // Of the tokenizer: where the chat template of rows with messages is looked for (data/chat_template.h), and the mask
  // token of texts that are masked (data/mask_tokens.h).
  std::filesystem::path tokenizer_folder = {};
  LabelKind labels = LabelKind::next_token;       // what the model predicts
  ClassNames classes = {};                        // of sequence_class
  int64_t token_types = 2;                        // of the model: with one, the second of two texts is as the first
  int64_t chat_bytes = ChatRenderer::kMostBytes;  // heap for rendering conversations
};

// Called now and then with the bytes read of all bytes; may throw to stop.
using DataProgress = std::function<void(int64_t bytes_read, int64_t bytes_total)>;

// Hash of what a cache is made from: each file's name, size and modification time, the tokenizer's identity and the
// options, and the chat template. `tokenizer` may be null for rows of {"input_ids", "labels"}. Throws Error(usage) for
// a missing or unsupported file.
uint64_t token_cache_key(const DataOptions& options, const Tokenizer* tokenizer);

// Tokenises all files into `cache_path`. Throws Error(usage | format) naming file, row and remedy for bad data,
// Error(run) on I/O errors (disk full); nothing is left then. Data without any scored token is refused.
DataCounts build_token_cache(const DataOptions& options, const Tokenizer* tokenizer,
                             const std::filesystem::path& cache_path, const DataProgress& progress = {});

// The same into a file of `directory` that has no name (base/nameless_file.h): nobody else finds it, and it is gone
// with the last who has it open.
TokenCache build_nameless_token_cache(const DataOptions& options, const Tokenizer* tokenizer,
                                      const std::filesystem::path& directory);

// Opens `cache_path` when it is whole and its key is that of the options, else builds it. `reused` (nullable) tells
// which.
TokenCache open_or_build_token_cache(const DataOptions& options, const Tokenizer* tokenizer,
                                     const std::filesystem::path& cache_path, bool* reused = nullptr,
                                     const DataProgress& progress = {});

// A bound on the heap that building a cache holds at once, whatever the data and the tokenizer (its tables excluded;
// rows with messages need `chat_bytes` besides).
int64_t data_memory_bytes(int64_t max_seq_length);

}  // namespace headroom
