// Converts rows to token sequences in the cache, with buffers that do not grow with the rows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "data/chat_renderer.h"
#include "data/class_names.h"
#include "data/row.h"
#include "data/token_cache_writer.h"
#include "tokenizer/stream_encoder.h"
#include "tokenizer/tokenizer.h"

namespace headroom {

// Used by one thread. Every id is checked against the vocabulary of the model: Error(format).
class RowTokenizer {
 public:
  // `tokenizer` may be null: rows that need one are then refused. It and `writer` outlive this object. The chat
  // template is looked for in `tokenizer_folder` at the first row with messages, the mask token if rows are to be
  // masked. The writer's labels decide which rows are allowed: texts that are masked and sequences with a class are put
  // between the special tokens of the post-processor and cut to fit; classes are those of `classes`. Pairs of texts are
  // cut as transformers' truncation=True does: the longer first, then both to half the room. A model of fewer than 2
  // `token_types` does not distinguish the second text. Conversations are rendered with `chat_bytes` of heap. Throws
  // Error(format) for a tokenizer that needs more than kEncoderBytes for 64 bytes of text.
  RowTokenizer(const Tokenizer* tokenizer, int64_t max_seq_length, int64_t vocab_size, TokenCacheWriter& writer,
               std::filesystem::path tokenizer_folder = {}, ClassNames classes = {}, int64_t token_types = 2,
               int64_t chat_bytes = ChatRenderer::kMostBytes);

  // Appends the row's sequence, cut to max_seq_length, and counts it.
  void add(const Row& row, const RowPlace& place);

  // A text file as one stream: any number of chunks, then end_stream(). Sequences of max_seq_length; the last may be
  // shorter.
  void add_stream(std::string_view chunk, const RowPlace& place);
  void end_stream(const RowPlace& place);

  // rows, empty_rows, cut_rows and lost_tokens so far.
  const DataCounts& counts() const { return counts_; }
  // A bound on the heap bytes for any tokenizer, without the tokenizer's own tables and the `chat_bytes` that rows with
  // messages need in addition.
  static int64_t memory_bytes(int64_t max_seq_length) { return 3 * max_seq_length * 4 + kEncoderBytes; }
  // Bytes of a text's encoder and its ids: texts are encoded in pieces of at most 64 KiB, or smaller ones if a
  // tokenizer needs more memory than this for them.
  static constexpr int64_t kEncoderBytes = int64_t{10} << 20;

 private:
  LabelKind labels() const { return writer_.labels(); }
  void check_kind(const Row& row, const RowPlace& place) const;
  void require_mask(const RowPlace& place);
  void add_whole(const Row& row, const RowPlace& place);
  void add_pair(const Row& row, const RowPlace& place);
  void add_labelled_ids(const Row& row, const RowPlace& place);
  int64_t read_list(const Row& row, const RowPart& list, std::string_view name, bool may_ignore,
                    std::vector<int32_t>& into, const RowPlace& place) const;
  void add_special(const std::vector<int32_t>& ids);
  void add_text(std::string_view text, const RowPlace& place);
  void add_part(const Row& row, const RowPart& part, const RowPlace& place);
  void end_text(const RowPlace& place);
  void add_eos(const RowPlace& place);
  void add_prompt(const Row& row, const RowPlace& place);
  void add_ids(const Row& row, const RowPlace& place);
  void add_messages(const Row& row, const RowPlace& place);
  int64_t tokens_before(std::string_view text, bool is_end, const RowPlace& place);
  void push(int32_t id);
  void flush_pieces(const RowPlace& place);
  void flush_stream(const RowPlace& place);
  void check_id(int32_t id, const RowPlace& place) const;
  void finish_row();

  const Tokenizer* tokenizer_;
  int64_t max_seq_length_;
  int64_t most_ids_;  // of the row so far; less than max_seq_length_ if special tokens follow
  int64_t vocab_size_;
  TokenCacheWriter& writer_;
  std::optional<StreamEncoder> encoder_;  // without special tokens, which are added here
  bool in_stream_ = false;
  std::vector<int32_t> pieces_;        // ids from an encoder, not used yet
  std::vector<int32_t> ids_, labels_;  // of the row so far, cut
  std::vector<int32_t> first_;         // of the first of two texts
  int64_t row_tokens_ = 0;             // of the row so far, uncut
  std::filesystem::path tokenizer_folder_;
  std::optional<ChatRenderer> chat_;
  ClassNames classes_;
  int64_t token_types_;
  int64_t chat_bytes_;
  size_t chunk_bytes_ = 0;  // of text given to the encoder at once
  bool has_mask_ = false;   // looked for and found
  DataCounts counts_;
};

}  // namespace headroom
