#include "planner/techniques/list_setting.h"

#include <fmt/format.h>

#include <charconv>

namespace headroom {

std::string write_list(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) {
    if (!text.empty()) text += ',';
    for (const char c : item) text += c == ',' || c == ' ' || c == '%' ? fmt::format("%{:02X}", c) : std::string(1, c);
  }
  return text;
}

std::vector<std::string> read_list(std::string_view text) {
  std::vector<std::string> items;
  if (text.empty()) return items;
  items.emplace_back();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',') {
      items.emplace_back();
    } else if (text[i] == '%' && i + 2 < text.size()) {
      int code = 0;
      std::from_chars(text.data() + i + 1, text.data() + i + 3, code, 16);
      items.back() += static_cast<char>(code);
      i += 2;
    } else {
      items.back() += text[i];
    }
  }
  return items;
}

}  // namespace headroom
