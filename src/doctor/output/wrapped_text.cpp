#include "doctor/output/wrapped_text.h"

#include <algorithm>
#include <utility>

namespace headroom::doctor {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0u) == 0x80u; }

// The first `width` columns of the text.
std::string_view first_columns(std::string_view text, size_t width) {
  size_t at = 0, count = 0;
  while (at < text.size()) {
    if (!continues(text[at]) && count++ == width) break;
    ++at;
  }
  return text.substr(0, at);
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    const bool space = static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
    if (!space) word += c;
    if (space && !word.empty()) words.push_back(std::exchange(word, {}));
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

}  // namespace

size_t columns(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += !continues(c);
  return count;
}

std::vector<std::string> wrap(std::string_view text, size_t width, size_t most) {
  std::vector<std::string> lines;
  std::string line;
  for (std::string word : words_of(text)) {
    while (columns(word) > width) {
      if (!line.empty()) lines.push_back(std::exchange(line, {}));
      const std::string head(first_columns(word, width));
      lines.push_back(head);
      word.erase(0, head.size());
    }
    if (word.empty()) continue;
    if (!line.empty() && columns(line) + 1 + columns(word) > width) lines.push_back(std::exchange(line, {}));
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty()) lines.push_back(line);
  if (most > 0 && lines.size() > most) {
    lines.resize(most);
    lines.back() = std::string(first_columns(lines.back(), width - 4));
    const size_t space = lines.back().rfind(' ');
    if (columns(lines.back()) == width - 4 && space != std::string::npos && space > width / 2)
      lines.back().resize(space);
    while (!lines.back().empty() && lines.back().back() == ' ') lines.back().pop_back();
    lines.back() += " ...";
  }
  return lines;
}

void add_block(std::string& out, std::string_view label, std::string_view text, size_t indent, size_t width,
               size_t most) {
  std::string start(label);
  start.resize(std::max(start.size(), indent), ' ');
  for (const std::string& line : wrap(text, width - indent, most)) {
    out += start + line + "\n";
    start.assign(indent, ' ');
  }
}

}  // namespace headroom::doctor
