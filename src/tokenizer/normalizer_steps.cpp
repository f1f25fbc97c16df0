#include "tokenizer/normalizer_steps.h"

#include <algorithm>

#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

char32_t first_character(std::string_view text) { return decode_utf8(text, 0).code; }
char32_t last_character(std::string_view text) { return decode_utf8(text, previous_utf8(text, text.size())).code; }

std::string spelled(char32_t code) {
  std::string text;
  append_utf8(code, text);
  return text;
}

}  // namespace

bool FormStep::allows_cut(const Boundary& boundary, BoundaryChoices& after) const {
  if (!converter_.keeps_apart(boundary.left, boundary.right)) return false;
  const std::string left = converter_.convert(spelled(boundary.left));
  const std::string right = converter_.convert(spelled(boundary.right));
  after.add(last_character(left), first_character(right));
  return true;
}

int64_t FormStep::growth() const {
  // The most bytes that one byte becomes: U+0390 (2 -> 6 bytes), and with compatibility U+FDFA (3 -> 33 bytes).
  return converter_.form() == NormalForm::nfkc || converter_.form() == NormalForm::nfkd ? 11 : 3;
}

std::string PrependStep::apply(std::string text, bool continued) const {
  if (!text.empty() && !continued) text.insert(0, content_);
  return text;
}

bool PrependStep::allows_cut(const Boundary& boundary, BoundaryChoices& after) const {
  after.add(boundary.left, boundary.right);
  return true;
}

std::string ReplaceStep::apply(std::string text, bool) const {
  std::string result;
  result.reserve(text.size());
  if (pattern_)
    replace_pattern(text, *pattern_, content_, result);
  else
    replace_literal(text, replaced_, content_, result);
  return result;
}

// A replacement for several characters does not stand for the first of them.
bool ReplaceStep::drops_front(std::string_view text) const {
  size_t bytes = 0;
  if (pattern_) {
    const std::optional<PatternMatch> match = pattern_->find(text, 0);
    if (match && match->begin == 0) bytes = match->end;
  } else if (text.starts_with(replaced_)) {
    bytes = replaced_.size();
  }
  return bytes > 0 && (content_.empty() || decode_utf8(text, 0).bytes < bytes);
}

// Adds what a character next to the boundary may become; false if that is unknown.
bool ReplaceStep::choose(char32_t code, bool left, std::string& choices) const {
  const std::string character = spelled(code);
  const bool whole = !pattern_ && replaced_ == character;
  if (!whole) choices += character;
  const bool mentioned = pattern_ ? pattern_->mentions(code) : replaced_.find(character) != std::string::npos;
  if (!mentioned) return true;
  if (content_.empty() || (!pattern_ && !whole)) return false;
  append_utf8(left ? last_character(content_) : first_character(content_), choices);
  return true;
}

bool ReplaceStep::allows_cut(const Boundary& boundary, BoundaryChoices& after) const {
  if (pattern_ && !pattern_->keeps_apart(boundary.left, boundary.right)) return false;
  std::string lefts, rights;
  if (!choose(boundary.left, true, lefts) || !choose(boundary.right, false, rights)) return false;
  for (size_t i = 0; i < lefts.size(); i += decode_utf8(lefts, i).bytes)
    for (size_t j = 0; j < rights.size(); j += decode_utf8(rights, j).bytes)
      after.add(decode_utf8(lefts, i).code, decode_utf8(rights, j).code);
  return true;
}

int64_t ReplaceStep::growth() const {
  const auto content = static_cast<int64_t>(content_.size());
  if (pattern_) return std::max<int64_t>(1, content);
  const auto replaced = static_cast<int64_t>(replaced_.size());
  return std::max<int64_t>(1, (content + replaced - 1) / replaced);
}

std::string StripEndsStep::apply(std::string text, bool continued) const {
  size_t begin = 0, end = text.size();
  if (left_ && !continued)
    while (begin < end && unicode::is_space(decode_utf8(text, begin).code)) begin += decode_utf8(text, begin).bytes;
  while (right_ && end > begin) {
    const size_t before = previous_utf8(text, end);
    if (!unicode::is_space(decode_utf8(text, before).code)) break;
    end = before;
  }
  text.erase(end);
  text.erase(0, begin);
  return text;
}

// A left character that is not white space stays, and separates what is stripped on its two sides.
bool StripEndsStep::allows_cut(const Boundary& boundary, BoundaryChoices& after) const {
  after.add(boundary.left, boundary.right);
  return !unicode::is_space(boundary.left);
}

bool StripEndsStep::drops_front(std::string_view text) const {
  return left_ && unicode::is_space(first_character(text));
}

bool CharacterStep::drops_front(std::string_view text) const {
  std::string first;
  map_(first_character(text), first);
  return first.empty();
}

std::string CharacterStep::apply(std::string text, bool) const {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Char next = decode_utf8(text, at);
    map_(next.code, result);
    at += next.bytes;
  }
  return result;
}

bool CharacterStep::allows_cut(const Boundary& boundary, BoundaryChoices& after) const {
  std::string left, right;
  map_(boundary.left, left);
  map_(boundary.right, right);
  if (left.empty() || right.empty()) return false;
  after.add(last_character(left), first_character(right));
  return true;
}

}  // namespace headroom
