#include "serve/api_access.h"

#include <algorithm>
#include <cctype>

namespace headroom {
namespace {

bool same_bytes(std::string_view given, std::string_view key) {
  unsigned difference = given.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < key.size(); ++i)
    difference |= static_cast<unsigned char>(key[i]) ^ static_cast<unsigned char>(i < given.size() ? given[i] : 0);
  return difference == 0;
}

}  // namespace

bool has_key(std::string_view authorization, const std::vector<std::string>& keys) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() < kScheme.size()) return false;
  for (size_t i = 0; i < kScheme.size(); ++i)
    if (std::tolower(static_cast<unsigned char>(authorization[i])) != kScheme[i]) return false;
  return is_key(authorization.substr(kScheme.size()), keys);
}

bool is_key(std::string_view given, const std::vector<std::string>& keys) {
  bool found = false;
  for (const std::string& key : keys) found |= same_bytes(given, key);
  return found;
}

}  // namespace headroom
