#include "doctor/remedies/model_words.h"

#include <cctype>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool in_a_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

constexpr double kLeast = 0.3, kMost = 700;  // billions: smaller or larger numbers mean something else

// Start of the number (digits, points, an 'x' between digits) that ends at `end`.
size_t begin_of_number(const std::string& text, size_t end) {
  size_t begin = end;
  while (begin > 0 && (digit(text[begin - 1]) || text[begin - 1] == '.' || text[begin - 1] == 'x')) --begin;
  while (begin < end && !digit(text[begin])) ++begin;
  return begin;
}

// "7", "1.5", "8x7". About a sixth of a model is shared by its experts.
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

// The ways to write "RTX-4090": "rtx 4090", "rtx4090", "rtx-4090", "4090".
std::vector<std::string> ways_to_write(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const size_t dash = name.find('-');
  const std::string series = name.substr(0, dash);
  if (dash == std::string::npos || (series != "rtx" && series != "gtx")) return {name};
  const std::string rest = name.substr(dash + 1);
  return {series + " " + rest, series + rest, name, rest};
}

// "8x4090", "2 * rtx 3090", "4 3090s": several devices.
bool several_before(const std::string& text, size_t at) {
  size_t end = at;
  while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == 'x' || text[end - 1] == '*')) --end;
  return end < at && end > 0 && digit(text[end - 1]);
}

}  // namespace

std::optional<Gpu> gpu_in_words(const std::string& text) {
  std::optional<Gpu> found;
  size_t longest = 3;  // "t4" would match inside too many words
  for (const Gpu& gpu : known_gpus())
    for (const std::string& name : ways_to_write(gpu.name)) {
      const size_t at = text.find(name), end = at + name.size();
      if (name.size() <= longest || at == std::string::npos) continue;
      const bool whole = (at == 0 || !in_a_word(text[at - 1])) &&
                         (end == text.size() || !in_a_word(text[end]) || text.compare(end, 3, "gpu") == 0);
      // A different card: "3080 ti", "4060-ti".
      if (!whole || text.compare(end, 3, " ti") == 0 || text.compare(end, 3, "-ti") == 0) continue;
      if (several_before(text, at)) return std::nullopt;
      found = gpu;
      longest = name.size();
    }
  return found;
}

std::optional<ModelWords> model_in_words(const std::string& text) {
  std::optional<ModelWords> least;
  for (size_t at = text.find('b'); at != std::string::npos; at = text.find('b', at + 1)) {
    if (at == 0 || !digit(text[at - 1]) || (at + 1 < text.size() && in_a_word(text[at + 1]))) continue;
    const size_t begin = begin_of_number(text, at);
    // Part of a hash or of a longer name ("0x1b", "h5b").
    if (begin == at || text.compare(begin, 2, "0x") == 0 || (begin > 0 && in_a_word(text[begin - 1]))) continue;
    const double size = billions(text.substr(begin, at - begin));
    if (size < kLeast || size > kMost || (least && least->parameters <= size * 1e9)) continue;
    least = ModelWords{size * 1e9, text.substr(begin, at + 1 - begin), 16};
  }
  if (least) least->bits = bits_in(text);
  return least;
}

}  // namespace headroom::doctor
