// Options of vLLM's server that have no effect here: accepted and explained, so that a command line can be pasted;
// refused if their value asks for something that headroom does not do.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace headroom {

// Name and value of those that were given, in the order given.
using VllmOptions = std::vector<std::pair<std::string, std::string>>;

// Adds them, without help texts. `given` outlives the app.
void add_vllm_options(CLI::App& app, VllmOptions& given);

// One sentence per given option: "--seed: ...". Throws Error(usage) for a value that headroom does not support.
std::vector<std::string> explain_vllm_options(const VllmOptions& given);

}  // namespace headroom
