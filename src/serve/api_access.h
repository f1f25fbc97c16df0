// Who may ask: API keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Whether an Authorization header gives one of the keys as a bearer token (RFC 6750; the scheme in any case). Takes the
// same time for every key of a length.
bool has_key(std::string_view authorization, const std::vector<std::string>& keys);
// The same of the key alone, as Anthropic's clients send it (x-api-key).
bool is_key(std::string_view given, const std::vector<std::string>& keys);

}  // namespace headroom
