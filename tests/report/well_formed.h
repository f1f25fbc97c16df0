// Whether a page is well-formed.
#pragma once

#include <stack>
#include <string>
#include <string_view>

namespace headroom::report {

// Every tag closed in order, every attribute quoted, no bare & or <. Returns what is wrong, or nothing.
inline std::string malformed(std::string_view text) {
  constexpr std::string_view doctype = "<!doctype html>";
  if (!text.starts_with(doctype)) return "no doctype";
  std::stack<std::string> open;
  for (size_t at = doctype.size(); at < text.size(); ++at) {
    const unsigned char c = static_cast<unsigned char>(text[at]);
    if (c < ' ' && c != '\n' && c != '\t') return "a control character";
    if (c == '&') {
      const size_t end = text.find(';', at);
      if (end == std::string_view::npos || end - at > 6) return "a bare &";
    }
    if (c == '>') return "a bare >";
    if (c != '<') continue;
    size_t end = at + 1;
    for (bool quoted = false; end < text.size() && (quoted || text[end] != '>'); ++end) {
      if (text[end] == '"') quoted = !quoted;
      if (text[end] == '<') return "a < inside a tag";
    }
    std::string_view tag = text.substr(at + 1, end - at - 1);
    const bool closes = tag.starts_with('/'), empty = tag.ends_with('/');
    if (closes) tag.remove_prefix(1);
    const std::string name(tag.substr(0, tag.find_first_of(" \n/")));
    if (closes && (open.empty() || open.top() != name)) return "</" + name + "> closes nothing";
    if (closes)
      open.pop();
    else if (!empty)
      open.push(name);
    at = end;
    if (!closes && name == "style") at = text.find("</style>", at) - 1;
  }
  return open.empty() ? "" : "<" + open.top() + "> is not closed";
}

}  // namespace headroom::report
