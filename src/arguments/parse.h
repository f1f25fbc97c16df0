// Options as names and values, without a command line.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "arguments/option.h"

namespace headroom {

// {"memory", "8GiB"}: without dashes in front, underscores count as dashes; a name may come several times.
using NamedValues = std::vector<std::pair<std::string, std::string>>;

// Whether the app has an option of this name.
bool has_option(const CLI::App& app, const std::string& name);

// Throws Error(usage) for an option that `app` does not have, naming the one that was meant.
[[noreturn]] void refuse_unknown_option(const CLI::App& app, const std::string& name);

// Gives the values to the app's options. Throws Error(usage) that names the option and the value; for a name that the
// app does not have, with the one that was meant.
void parse_values(CLI::App& app, const NamedValues& values);

}  // namespace headroom
