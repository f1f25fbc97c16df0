#include "tokenizer/graphemes.h"

#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

using Class = GraphemeClass;

constexpr char32_t kFirstSyllable = 0xAC00, kLastSyllable = 0xD7A3, kTrails = 28;

bool is_extend(Class c) { return c == Class::extend || c == Class::non_joiner || c == Class::linker; }
bool attaches(Class c) { return is_extend(c) || c == Class::joiner || c == Class::spacing_mark; }

// Rules GB6 to GB8.
bool hangul_joins(Class left, Class right) {
  switch (left) {
    case Class::hangul_lead:
      return right == Class::hangul_lead || right == Class::hangul_vowel || right == Class::hangul_open ||
             right == Class::hangul_closed;
    case Class::hangul_open:
    case Class::hangul_vowel:
      return right == Class::hangul_vowel || right == Class::hangul_trail;
    case Class::hangul_closed:
    case Class::hangul_trail:
      return right == Class::hangul_trail;
    default:
      return false;
  }
}

bool is_line_end(char32_t left, char32_t right) { return left == '\r' && right == '\n'; }

// What the rules that look back further than one character need to know about a cluster so far.
class Before {
 public:
  void take(Class c) {
    after_joined_picture_ = picture_ && c == Class::joiner;
    picture_ = c == Class::pictographic || (picture_ && is_extend(c));
    if (c == Class::consonant) {
      conjunct_ = true;
      linked_ = false;
    } else if (c == Class::linker) {
      linked_ = conjunct_;
    } else if (c != Class::extend && c != Class::joiner) {
      conjunct_ = linked_ = false;
    }
  }
  // Rules GB9c and GB11.
  bool joins(Class next) const {
    return (next == Class::consonant && linked_) || (next == Class::pictographic && after_joined_picture_);
  }

 private:
  bool picture_ = false;               // it ends in a pictograph, perhaps extended
  bool after_joined_picture_ = false;  // and then a joiner
  bool conjunct_ = false;              // it ends in a consonant, perhaps extended
  bool linked_ = false;                // by a linker among others
};

}  // namespace

GraphemeClass grapheme_class(char32_t code) {
  if (code < 0x80) return code < 0x20 || code == 0x7F ? Class::control : Class::other;
  if (code >= kFirstSyllable && code <= kLastSyllable)
    return (code - kFirstSyllable) % kTrails == 0 ? Class::hangul_open : Class::hangul_closed;
  const unicode::Run* run = unicode::find_run(unicode::grapheme_classes, unicode::grapheme_classes_size, code);
  return run == nullptr ? Class::other : static_cast<Class>(run->value);
}

size_t grapheme_end(std::string_view text, size_t at) {
  Utf8Char last = decode_utf8(text, at);
  Class left = grapheme_class(last.code);
  Before before;
  before.take(left);
  at += last.bytes;
  while (at < text.size()) {
    const Utf8Char next = decode_utf8(text, at);
    const Class right = grapheme_class(next.code);
    if (left == Class::control || right == Class::control) {
      if (!is_line_end(last.code, next.code)) break;
    } else if (!attaches(right) && left != Class::prepend && !hangul_joins(left, right) && !before.joins(right)) {
      break;
    }
    before.take(right);
    at += next.bytes;
    last = next;
    left = right;
  }
  return at;
}

bool graphemes_always_break(char32_t left_code, char32_t right_code) {
  const Class left = grapheme_class(left_code), right = grapheme_class(right_code);
  if (left == Class::control || right == Class::control) return !is_line_end(left_code, right_code);
  if (attaches(right) || left == Class::prepend || hangul_joins(left, right)) return false;
  if (right == Class::consonant && (is_extend(left) || left == Class::joiner)) return false;
  return right != Class::pictographic || left != Class::joiner;
}

}  // namespace headroom
