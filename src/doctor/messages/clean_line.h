// What a program wrote, without what terminals, launchers, containers and loggers put around it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::doctor {

struct CleanLine {
  std::string text;
  std::optional<int> rank;  // from "[rank3]:", "[default3]:", "3: " of srun, "[1,3]<stderr>:", "(... TP3 pid=9)"
};

// Appends the clean line or lines that `raw` (without its line end) holds: several when progress bars wrote over the
// line with carriage returns, or when a JSON record of a container's log holds text of several lines.
void clean_lines(std::string_view raw, std::vector<CleanLine>& lines);

// Without ANSI colour and cursor sequences (raw, or as "^[[31m" and "#033[31m"), NUL bytes and backspaces.
std::string without_ansi(std::string_view raw);

// `text` with every byte that is not part of valid UTF-8, and every control character but line end and tab, replaced
// by '?'.
std::string printable(std::string_view text);

}  // namespace headroom::doctor
