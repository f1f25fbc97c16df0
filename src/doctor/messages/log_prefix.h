// Prefixes that loggers and launchers write before a line: timestamps, ranks, process names, levels.
#pragma once

#include <optional>
#include <string_view>

namespace headroom::doctor {

// The line without its prefixes. Sets `rank` when a prefix has one, else leaves it unchanged.
std::string_view without_prefixes(std::string_view line, std::optional<int>& rank);

}  // namespace headroom::doctor
