// Base64 (RFC 4648).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// The bytes that a text in the standard alphabet with padding stands for; nothing when it is none.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace headroom
