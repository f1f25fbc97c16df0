#include "tokenizer/decoder_stages.h"

#include <array>
#include <utility>

#include "tokenizer/byte_symbols.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

int fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const int high = token[3] == '+' ? 0 : hex_digit(token[3]);
  const int low = hex_digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::string bytes_of_token(std::string_view token) {
  std::string bytes;
  for (size_t at = 0; at < token.size();) {
    const Utf8Char next = decode_utf8(token, at);
    const int byte = byte_of_symbol(next.code);
    if (byte < 0) return std::string(token);
    bytes.push_back(static_cast<char>(byte));
    at += next.bytes;
  }
  return bytes;
}

void JoinStage::take(std::string_view token, DecoderOutput& out) {
  if (!first_) out.token(" ");
  first_ = false;
  out.token(token);
}

void ByteLevelStage::take(std::string_view token, DecoderOutput& out) {
  held_ += bytes_of_token(token);
  give_valid(out, false);
}

void ByteLevelStage::finish(DecoderOutput& out) { give_valid(out, true); }

void ByteLevelStage::give_valid(DecoderOutput& out, bool ends) {
  std::string text;
  size_t at = 0;
  while (at < held_.size()) {
    const Utf8Check check = check_utf8(held_, at);
    text.append(held_, at, check.valid - at);
    at = check.valid;
    if (check.broken == 0 || (check.incomplete && !ends)) break;
    text += kReplacement;
    at += check.broken;
  }
  held_.erase(0, at);
  if (!text.empty()) out.token(text);
}

void ByteFallbackStage::take(std::string_view token, DecoderOutput& out) {
  const int byte = fallback_byte(token);
  if (byte >= 0) {
    bytes_.push_back(static_cast<char>(byte));
    return;
  }
  finish(out);
  out.token(token);
}

void ByteFallbackStage::finish(DecoderOutput& out) {
  if (bytes_.empty()) return;
  const std::string bytes = std::move(bytes_);
  bytes_.clear();
  if (check_utf8(bytes).valid == bytes.size()) {
    out.token(bytes);
    return;
  }
  for (size_t i = 0; i < bytes.size(); ++i) out.token(kReplacement);
}

void MapStage::take(std::string_view token, DecoderOutput& out) {
  const std::string mapped = map_(token, first_);
  first_ = false;
  out.token(mapped);
}

std::string strip_token(std::string_view token, std::string_view character, int32_t start, int32_t stop) {
  for (; start > 0 && token.starts_with(character); --start) token.remove_prefix(character.size());
  for (; stop > 0 && token.ends_with(character); --stop) token.remove_suffix(character.size());
  return std::string(token);
}

std::string join_word_piece(std::string_view token, std::string_view prefix, bool first, bool cleans_up) {
  std::string text;
  if (!first && token.starts_with(prefix))
    token.remove_prefix(prefix.size());
  else if (!first)
    text = " ";
  text += token;
  if (!cleans_up) return text;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kReplacements = {{{" .", "."},
                                                                                            {" ?", "?"},
                                                                                            {" !", "!"},
                                                                                            {" ,", ","},
                                                                                            {" ' ", "'"},
                                                                                            {" n't", "n't"},
                                                                                            {" 'm", "'m"},
                                                                                            {" do not", " don't"},
                                                                                            {" 's", "'s"},
                                                                                            {" 've", "'ve"},
                                                                                            {" 're", "'re"}}};
  for (const auto& [dirty, clean] : kReplacements) {
    std::string cleaned;
    replace_literal(text, dirty, clean, cleaned);
    text = std::move(cleaned);
  }
  return text;
}

void StripPiecesStage::take(std::string_view token, DecoderOutput& out) {
  for (; left_ > 0 && token.starts_with(character_); --left_) token.remove_prefix(character_.size());
  if (!token.empty()) left_ = 0;
  held_ += token;
  size_t keep = held_.size();
  for (int32_t i = 0; i < stop_ && std::string_view(held_).substr(0, keep).ends_with(character_); ++i)
    keep -= character_.size();
  if (keep > 0) out.token(std::string_view(held_).substr(0, keep));
  held_.erase(0, keep);
}

void StripPiecesStage::finish(DecoderOutput&) {
  held_.clear();
  left_ = start_;
}

void WholeStage::finish(DecoderOutput& out) {
  const std::string whole = std::move(held_);
  held_.clear();
  inner_->take(whole, out);
  inner_->finish(out);
}

}  // namespace headroom
