// Removes what terminals, launchers, containers and loggers add to a program's output.
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

// Appends the clean line or lines of `raw` (given without its line end). There are several when progress bars overwrote
// the line with carriage returns, or when a JSON record of a container's log holds several lines.
void clean_lines(std::string_view raw, std::vector<CleanLine>& lines);

// Without ANSI sequences for colour and cursor (raw, or as "^[[31m" and "#033[31m"), NUL bytes and backspaces.
std::string without_ansi(std::string_view raw);

// `text` with '?' for every byte that is not valid UTF-8 and every control character except line feed and tab.
std::string printable(std::string_view text);

}  // namespace headroom::doctor
