// A parsed command line as text that people can copy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "arguments/parse.h"
#include "train/options.h"

namespace headroom {

// "headroom plan --model M --memory 8GiB": `command` with the options that the parsed app was given, in the order of
// `names`. `changes` replace given values; an empty value drops the option. Values of --technique are added to those
// given. Quotes values for a shell.
std::string shown_command(std::string_view command, const CLI::App& app, const std::vector<std::string>& names,
                          const NamedValues& changes);

// The same for an app of train options that parsed into `options`: `headroom train`, with --output-dir run if none was
// given; `headroom plan` if there is no data to train on.
std::string shown_training(const CLI::App& app, const std::vector<std::string>& names, const TrainOptions& options,
                           NamedValues changes);

}  // namespace headroom
