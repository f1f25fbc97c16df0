// Limits of a document, so that hostile text costs little.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"

namespace headroom {

constexpr int kMaxDocumentDepth = 64;
constexpr int64_t kMaxDocumentValues = 200'000;
constexpr int64_t kMaxDocumentBytes = int64_t{8} << 20;

// Refuses texts that are too large, and UTF-16 and UTF-32: a byte order mark, or zeros around the first character.
inline void refuse_unreadable_document(std::string_view text, const std::string& source) {
  if (static_cast<int64_t>(text.size()) > kMaxDocumentBytes)
    throw Error(ErrorKind::format,
                fmt::format("{} has {}, a configuration has at most {}", source,
                            format_bytes(static_cast<int64_t>(text.size())), format_bytes(kMaxDocumentBytes)),
                "check that the path names a configuration");
  const std::string_view mark = text.substr(0, 2);
  if (text.substr(0, 4).find('\0') != std::string_view::npos || mark == "\xFE\xFF" || mark == "\xFF\xFE")
    throw Error(ErrorKind::format, fmt::format("{} begins as UTF-16 or UTF-32 do", source), "save it as UTF-8");
}

}  // namespace headroom
