// A command line written down again, for people to copy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "arguments/parse.h"
#include "train/options.h"

namespace headroom {

// "headroom plan --model M --memory 8GiB": `command` with those of its options, `names`, that a parsed app was given,
// in their order. `changes` stand in for what was given; an empty value leaves an option out. What changes say of
// --technique is added. Values that a shell would take apart are quoted.
std::string shown_command(std::string_view command, const CLI::App& app, const std::vector<std::string>& names,
                          const NamedValues& changes);

// The same of the app of train options that gave `options`: `headroom train`, into a folder `run` where none is given;
// `headroom plan` where there is no data to train on.
std::string shown_training(const CLI::App& app, const std::vector<std::string>& names, const TrainOptions& options,
                           NamedValues changes);

}  // namespace headroom
