#include "doctor/messages/squeezed.h"

namespace headroom::doctor {

Squeezed::Squeezed(std::string_view text) {
  view_.reserve(text.size());
  origin_.reserve(text.size() + 1);
  bool line_end = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f') {
      line_end |= c == '\n';
      continue;
    }
    if (c == '\\' && at + 1 < text.size()) {
      const char next = text[at + 1];
      if (next == 'n' || next == 't' || next == 'r') {
        line_end |= next == 'n';
        ++at;
        continue;
      }
      if (next == '"' || next == '\'' || next == '\\') continue;  // the escaped character follows by itself
    }
    view_ += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    origin_.push_back(static_cast<uint32_t>(at));
    line_gap_.push_back(line_end);
    line_end = false;
  }
  origin_.push_back(static_cast<uint32_t>(text.size()));
}

}  // namespace headroom::doctor
