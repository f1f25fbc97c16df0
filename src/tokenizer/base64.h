// Base64 (RFC 4648).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// Decodes text in the standard alphabet with padding; empty if it is not base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace headroom
