#include "doctor/config/setting.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace headroom::doctor {
namespace {

std::string scalar_text(const DocumentNode& node) { return node.kind == DocumentNode::Kind::null ? "null" : node.text; }

// The scalars of a list, nested lists included.
void add_items(const DocumentNode& node, Setting& setting) {
  for (const DocumentNode& item : node.items) {
    if (!item.items.empty()) {
      add_items(item, setting);
      continue;
    }
    setting.items.push_back(scalar_text(item));
    setting.text += (setting.text.empty() ? "" : ",") + setting.items.back();
  }
}

// OmegaConf's interpolations, and placeholders for the user to fill in.
std::string why_unreadable(std::string_view text) {
  if (text.find("${") != std::string_view::npos) return "an interpolation that this file does not resolve";
  if (text.size() > 2 && text.front() == '<' && text.back() == '>' && text.find('|') == std::string_view::npos &&
      text.find(' ') == std::string_view::npos &&
      std::any_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; }))
    return "a placeholder to be filled in";
  return {};
}

}  // namespace

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return result;
}

std::string table_key(std::string_view key) {
  while (!key.empty() && key.front() == '-') key.remove_prefix(1);
  std::string result(key);
  std::replace(result.begin(), result.end(), '-', '_');
  return result;
}

std::vector<std::string> split_words(std::string_view text, std::string_view separators) {
  std::vector<std::string> words;
  size_t start = 0;
  while (start <= text.size()) {
    const size_t end = std::min(text.find_first_of(separators, start), text.size());
    std::string_view word = text.substr(start, end - start);
    while (!word.empty() && (word.front() == ' ' || word.front() == '\t')) word.remove_prefix(1);
    while (!word.empty() && (word.back() == ' ' || word.back() == '\t')) word.remove_suffix(1);
    if (!word.empty()) words.emplace_back(word);
    start = end + 1;
  }
  return words;
}

Setting setting_of(const DocumentLeaf& leaf, const std::string& file) {
  Setting setting;
  setting.path = table_key(leaf.path);
  setting.origin = {file, leaf.line, leaf.path};
  const DocumentNode& node = *leaf.value;
  switch (node.kind) {
    case DocumentNode::Kind::null:
      setting.is_null = true;
      break;
    case DocumentNode::Kind::scalar:
      setting.text = node.text;
      setting.quoted = node.quoted;
      setting.items = {node.text};
      setting.unreadable = why_unreadable(node.text);
      break;
    default:
      setting.is_list = true;
      add_items(node, setting);
  }
  return setting;
}

std::optional<bool> truth(const Setting& setting) {
  const std::string word = lower(setting.text);
  for (const char* yes : {"true", "yes", "on", "1", "t", "y"})
    if (word == yes) return true;
  for (const char* no : {"false", "no", "off", "0", "f", "n", "none"})
    if (word == no) return false;
  return std::nullopt;
}

std::optional<double> real_number(std::string_view text) {
  std::string digits(text);
  std::erase(digits, '_');
  const char* first = digits.data();
  if (!digits.empty() && *first == '+') ++first;
  double value = 0;
  const auto [end, error] = std::from_chars(first, digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<int64_t> whole_number(std::string_view text) {
  const std::optional<double> value = real_number(text);
  if (!value || *value != std::floor(*value) || std::abs(*value) > 9e15) return std::nullopt;
  return static_cast<int64_t>(*value);
}

std::optional<double> real_number(const Setting& setting) {
  return setting.is_list ? std::nullopt : real_number(setting.text);
}
std::optional<int64_t> whole_number(const Setting& setting) {
  return setting.is_list ? std::nullopt : whole_number(setting.text);
}

}  // namespace headroom::doctor
