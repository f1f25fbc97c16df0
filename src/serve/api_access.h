// Access control: API keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Whether an Authorization header has one of the keys as a bearer token (RFC 6750; the scheme in any case). The time
// depends only on the lengths of the keys.
bool has_key(std::string_view authorization, const std::vector<std::string>& keys);
// The same for a key alone, as sent by Anthropic's clients (x-api-key).
bool is_key(std::string_view given, const std::vector<std::string>& keys);

}  // namespace headroom
