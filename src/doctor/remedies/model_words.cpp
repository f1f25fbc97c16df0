#include "doctor/remedies/model_words.h"

#include <cctype>
#include <cstdlib>
#include <string_view>

#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool in_a_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

constexpr double kLeast = 0.3, kMost = 700;  // billions: what is smaller or larger is something else

// The digits, points and an 'x' between numbers that end at `end`.
size_t begin_of_number(const std::string& text, size_t end) {
  size_t begin = end;
  while (begin > 0 && (digit(text[begin - 1]) || text[begin - 1] == '.' || text[begin - 1] == 'x')) --begin;
  while (begin < end && !digit(text[begin])) ++begin;
  return begin;
}

// "7", "1.5", "8x7": experts share what is not theirs, about a sixth.
double billions(const std::string& number) {
  constexpr double kOwn = 0.84;
  const size_t times = number.find('x');
  const double first = std::strtod(number.c_str(), nullptr);
  if (times == std::string::npos) return first;
  return first * std::strtod(number.c_str() + times + 1, nullptr) * kOwn;
}

int bits_in(const std::string& text) {
  constexpr std::string_view kFour = "4bit|4-bit|int4|awq|gptq|nf4|gguf|ggml|q4_|load_in_4bit|qlora|bnb_4bit",
                             kEight = "8bit|8-bit|int8|fp8|q8_|load_in_8bit";
  if (!any_word(text, kFour).empty()) return 4;
  return any_word(text, kEight).empty() ? 16 : 8;
}

}  // namespace

std::optional<ModelWords> model_in_words(const std::string& text) {
  std::optional<ModelWords> least;
  for (size_t at = text.find('b'); at != std::string::npos; at = text.find('b', at + 1)) {
    if (at == 0 || !digit(text[at - 1]) || (at + 1 < text.size() && in_a_word(text[at + 1]))) continue;
    const size_t begin = begin_of_number(text, at);
    // A part of a hash or of a longer name ("0x1b", "h5b").
    if (begin == at || (begin > 0 && in_a_word(text[begin - 1]))) continue;
    const double size = billions(text.substr(begin, at - begin));
    if (size < kLeast || size > kMost || (least && least->parameters <= size * 1e9)) continue;
    least = ModelWords{size * 1e9, text.substr(begin, at + 1 - begin), 16};
  }
  if (least) least->bits = bits_in(text);
  return least;
}

}  // namespace headroom::doctor
