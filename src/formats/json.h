// JSON files small enough for a DOM, with errors that name the file and the position.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace headroom {

using Json = nlohmann::json;

// Parses `text`; `source` names it in errors. Throws Error(format) with the byte position and what was found there, in
// at most 200 printable bytes. Nesting deeper than 64 levels and NUL bytes are refused.
Json parse_json(std::string_view text, const std::string& source);

// Reads and parses a file of at most `limit_bytes`. Throws Error(usage) when it is missing, Error(format) when
// malformed or larger.
Json read_json(const std::filesystem::path& path, int64_t limit_bytes = int64_t{64} << 20);

}  // namespace headroom
