// Some members of a JSON file.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "formats/json.h"

namespace headroom {

// Reads and parses a file of at most `limit_bytes`, an object of which only these members are kept; others take no
// memory. Errors as read_json().
Json read_json_members(const std::filesystem::path& path, std::span<const std::string_view> members,
                       int64_t limit_bytes);

}  // namespace headroom
