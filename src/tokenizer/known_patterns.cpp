#include "tokenizer/known_patterns.h"

#include <array>

#include "base/error.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace headroom {

const std::string_view kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

namespace {

// The kinds of characters that these patterns distinguish; `end` is the end of the text.
enum class Kind : uint8_t { letter, number, space, newline, other, end };

Kind kind_of(char32_t code) {
  if (code == '\r' || code == '\n') return Kind::newline;
  if (unicode::is_space(code)) return Kind::space;
  if (unicode::in_categories(code, unicode::kLetter)) return Kind::letter;
  return unicode::in_categories(code, unicode::kNumber) ? Kind::number : Kind::other;
}

constexpr std::array<Kind, 128> ascii_kinds() {
  std::array<Kind, 128> kinds{};
  for (char32_t c = 0; c < 128; ++c) {
    const bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    kinds[c] = letter                   ? Kind::letter
               : c >= '0' && c <= '9'   ? Kind::number
               : c == '\r' || c == '\n' ? Kind::newline
               : space                  ? Kind::space
                                        : Kind::other;
  }
  return kinds;
}
constexpr std::array<Kind, 128> kAsciiKinds = ascii_kinds();

struct Seen {
  Kind kind;
  unsigned bytes;
};

Seen look(std::string_view text, size_t at) {
  if (at >= text.size()) return {Kind::end, 0};
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) return {kAsciiKinds[byte], 1};
  const Utf8Char next = decode_utf8(text, at);
  return {kind_of(next.code), next.bytes};
}

bool is_white(Kind kind) { return kind == Kind::space || kind == Kind::newline; }

// The end of the run of characters of this kind that begins at `at`.
size_t skip(std::string_view text, size_t at, Kind kind) {
  for (Seen seen = look(text, at); seen.kind == kind; seen = look(text, at)) at += seen.bytes;
  return at;
}

// The end of 's 't 're 've 'm 'll 'd at `at`, else `at`.
size_t skip_contraction(std::string_view text, size_t at, bool any_case) {
  const auto letter = [&](size_t offset) {
    if (at + offset >= text.size()) return '\0';
    const char c = text[at + offset];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  };
  const char first = letter(1), second = letter(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if ((first == 'r' || first == 'v') && second == 'e') return at + 3;
  if (first == 'l' && second == 'l') return at + 3;
  if (any_case && text.substr(at + 1).starts_with("\u017F")) return at + 3;
  return at;
}

// \s+(?!\S)|\s+ at white space: all of it, except the last of several characters if something follows.
size_t skip_white(std::string_view text, size_t at) {
  size_t end = at, last = at;
  for (Seen seen = look(text, end); is_white(seen.kind); seen = look(text, end)) {
    last = end;
    end += seen.bytes;
  }
  return end == text.size() || last == at ? end : last;
}

size_t scan_gpt2(std::string_view text, size_t at) {
  if (text[at] == '\'') {
    const size_t end = skip_contraction(text, at, false);
    if (end != at) return end;
  }
  const size_t start = at + (text[at] == ' ' ? 1 : 0);
  const Seen first = look(text, start);
  if (first.kind == Kind::end || is_white(first.kind)) return skip_white(text, at);
  return skip(text, start + first.bytes, first.kind);
}

// \s*[\r\n]+|\s+(?!\S)|\s+ : up to the last newline of the white space if there is one.
size_t skip_lines_or_white(std::string_view text, size_t at) {
  size_t end = at, after_newline = at;
  for (Seen seen = look(text, end); is_white(seen.kind); seen = look(text, end)) {
    end += seen.bytes;
    if (seen.kind == Kind::newline) after_newline = end;
  }
  return after_newline != at ? after_newline : skip_white(text, at);
}

size_t scan_cl100k(std::string_view text, size_t at, int most_digits) {
  if (text[at] == '\'') {
    const size_t end = skip_contraction(text, at, true);
    if (end != at) return end;
  }
  const Seen first = look(text, at);
  const size_t after = at + first.bytes;
  if (first.kind == Kind::letter) return skip(text, after, Kind::letter);
  if (first.kind == Kind::number) {
    size_t end = after;
    for (int i = 1; i < most_digits; ++i) {
      const Seen digit = look(text, end);
      if (digit.kind != Kind::number) break;
      end += digit.bytes;
    }
    return end;
  }
  const Seen second = look(text, after);
  if (first.kind != Kind::newline && second.kind == Kind::letter) return skip(text, after, Kind::letter);
  if (first.kind == Kind::other || (text[at] == ' ' && second.kind == Kind::other))
    return skip(text, skip(text, after, Kind::other), Kind::newline);
  return skip_lines_or_white(text, at);
}

}  // namespace

KnownPattern recognise_pattern(std::string_view text) {
  if (text == kGpt2Pattern) return KnownPattern::gpt2;
  if (text == kQwen2Pattern) return KnownPattern::qwen2;
  if (text == kLlama3Pattern) return KnownPattern::llama3;
  return KnownPattern::none;
}

size_t scan_known_pattern(KnownPattern pattern, std::string_view text, size_t at) {
  switch (pattern) {
    case KnownPattern::gpt2:
      return scan_gpt2(text, at);
    case KnownPattern::qwen2:
      return scan_cl100k(text, at, 1);
    case KnownPattern::llama3:
      return scan_cl100k(text, at, 3);
    case KnownPattern::none:
      break;
  }
  throw_internal(__FILE__, __LINE__, "known pattern", "no scanner");
}

}  // namespace headroom
