#include "tokenizer/stream_encoder.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

// Pieces are encoded once they have this size, if there is a place to cut.
constexpr size_t kWantedPieceBytes = size_t{64} << 10;
constexpr int64_t kLeastPieceBytes = 64;

}  // namespace

StreamEncoder::StreamEncoder(const Tokenizer& tokenizer, bool add_special_tokens, int64_t max_piece_bytes)
    : pipeline_(tokenizer.shared_pipeline()),
      workspace_(std::make_unique<TokenizerWorkspace>()),
      place_(std::make_unique<TextPlace>()),
      add_special_tokens_(add_special_tokens),
      max_piece_bytes_(static_cast<size_t>(std::max(max_piece_bytes, kLeastPieceBytes))) {}

StreamEncoder::~StreamEncoder() = default;
StreamEncoder::StreamEncoder(StreamEncoder&&) noexcept = default;
StreamEncoder& StreamEncoder::operator=(StreamEncoder&&) noexcept = default;

int64_t StreamEncoder::memory_bound(const Tokenizer& tokenizer, int64_t max_piece_bytes) {
  const int64_t piece = std::max(max_piece_bytes, kLeastPieceBytes);
  const int64_t words = tokenizer.pipeline().word_bytes_bound(piece);
  // The buffer, copies of it while it is normalized and split (growing strings reserve twice their size), and the
  // model's.
  return static_cast<int64_t>(sizeof(TokenizerPipeline)) + piece + 4 * words + TokenizerWorkspace::memory_bound(words);
}

void StreamEncoder::feed(std::string_view chunk, std::vector<int32_t>& ids) {
  if (!started_ && add_special_tokens_) {
    const std::vector<int32_t>& prefix = pipeline_->post_processor().prefix;
    ids.insert(ids.end(), prefix.begin(), prefix.end());
  }
  started_ = true;
  buffer_.reserve(max_piece_bytes_);
  while (!chunk.empty()) {
    const size_t taken = std::min(chunk.size(), max_piece_bytes_ - buffer_.size());
    buffer_.append(chunk.substr(0, taken));
    chunk.remove_prefix(taken);
    check_buffer(false);
    encode_what_is_certain(ids);
  }
}

// Checks the bytes that are new; an incomplete character may be at the end unless the text `ends` there.
void StreamEncoder::check_buffer(bool ends) {
  const Utf8Check check = check_utf8(buffer_, valid_);
  valid_ = check.valid;
  if (check.broken == 0 || (check.incomplete && !ends)) return;
  const std::string_view broken = std::string_view(buffer_).substr(valid_);
  require_utf8(broken, static_cast<size_t>(consumed_) + valid_);
}

void StreamEncoder::encode_what_is_certain(std::vector<int32_t>& ids) {
  while (valid_ >= kWantedPieceBytes || buffer_.size() == max_piece_bytes_) {
    if (const size_t cut = last_cut(); cut > 0) {
      encode_front(cut, ids);
    } else if (buffer_.size() == max_piece_bytes_) {
      ++forced_cuts_;
      encode_front(valid_, ids);
    } else {
      searched_ = valid_;
      return;
    }
  }
}

// The last place in the buffer where the text may be cut, or 0 (there is none before searched_).
size_t StreamEncoder::last_cut() const {
  const std::string_view text = std::string_view(buffer_).substr(0, valid_);
  if (text.empty()) return 0;
  size_t at = previous_utf8(text, text.size());
  char32_t right = decode_utf8(text, at).code;
  while (at > 0 && at >= searched_) {
    const size_t before = previous_utf8(text, at);
    const char32_t left = decode_utf8(text, before).code;
    if (pipeline_->allows_cut(left, right)) return at;
    at = before;
    right = left;
  }
  return 0;
}

void StreamEncoder::encode_front(size_t bytes, std::vector<int32_t>& ids) {
  *place_ = pipeline_->encode(std::string_view(buffer_).substr(0, bytes), *place_, *workspace_, ids);
  buffer_.erase(0, bytes);
  consumed_ += static_cast<int64_t>(bytes);
  valid_ -= bytes;
  searched_ = 0;
}

void StreamEncoder::finish(std::vector<int32_t>& ids) {
  feed({}, ids);
  check_buffer(true);
  encode_front(buffer_.size(), ids);
  if (add_special_tokens_) {
    const std::vector<int32_t>& suffix = pipeline_->post_processor().suffix;
    ids.insert(ids.end(), suffix.begin(), suffix.end());
  }
  consumed_ = 0;
  started_ = false;
  *place_ = TextPlace();
}

}  // namespace headroom
