// What bounds a document, so that hostile text costs little.
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

inline void refuse_large_document(std::string_view text, const std::string& source) {
  if (static_cast<int64_t>(text.size()) > kMaxDocumentBytes)
    throw Error(ErrorKind::format,
                fmt::format("{} has {}, a configuration has at most {}", source,
                            format_bytes(static_cast<int64_t>(text.size())), format_bytes(kMaxDocumentBytes)),
                "check that the path names a configuration");
}

}  // namespace headroom
