#include "tokenizer/unicode.h"

namespace headroom::unicode {
namespace {

constexpr char32_t kTableEnd = 0x20000;

// Letters and digits in circles and squares: symbols by category, but alphabetic.
bool is_alphabetic_symbol(char32_t code) {
  return (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
         (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
}

constexpr uint16_t kWord = kLetter | kMark | bit(Category::Nd) | bit(Category::Nl) | bit(Category::Pc);

}  // namespace

Category category(char32_t code) {
  if (code < kTableEnd) {
    const size_t word = category_block[code >> 7] * size_t{8} + ((code >> 4) & 7);
    return static_cast<Category>((category_nibbles[word] >> ((code & 15) * 4)) & 15);
  }
  const Run* run = find_run(category_runs, category_runs_size, code);
  return run != nullptr ? static_cast<Category>(run->value) : Category::other;
}

bool is_word(char32_t code) {
  const bool superscript_or_fraction = code == 0xB2 || code == 0xB3 || code == 0xB9 || (code >= 0xBC && code <= 0xBE);
  return is_word_in_brackets(code) || superscript_or_fraction;
}

bool is_word_in_brackets(char32_t code) { return in_categories(code, kWord) || is_alphabetic_symbol(code); }

bool is_added_token_word(char32_t code) { return is_word_in_brackets(code) || code == 0x200C || code == 0x200D; }

bool is_digits_digit(char32_t code) {
  // Digits added in Unicode 17.0, which only this pre-tokenizer knows.
  const bool newer = (code >= 0x11DE0 && code <= 0x11DE9) || (code >= 0x16FF4 && code <= 0x16FF6);
  return in_categories(code, kNumber) || newer;
}

bool is_punctuation_mark(char32_t code) {
  if (code < 0x80)
    return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') || (code >= '[' && code <= '`') ||
           (code >= '{' && code <= '~');
  const bool differs = find_run(punctuation_differs, punctuation_differs_size, code) != nullptr;
  return in_categories(code, kPunctuation) != differs;
}

}  // namespace headroom::unicode
