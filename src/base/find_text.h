// Finding a text in a longer one.
#pragma once

#include <cstring>
#include <string_view>

namespace headroom {

// text.find(wanted, from), in linear time for long texts, and several times as fast in prose and logs: memmem skips
// where find() looks at every place of the first character.
inline size_t find_text(std::string_view text, std::string_view wanted, size_t from = 0) {
  if (from > text.size()) return std::string_view::npos;
  if (wanted.empty()) return from;
  const void* found = ::memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return found ? static_cast<size_t>(static_cast<const char*>(found) - text.data()) : std::string_view::npos;
}

}  // namespace headroom
