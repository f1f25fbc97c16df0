// Options of vLLM's server that have no meaning of their own here: accepted and explained, so that a command line can
// be pasted; refused where their value asks for what is not done.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace headroom {

// Name and value of those that were given, in their order.
using VllmOptions = std::vector<std::pair<std::string, std::string>>;

// Adds them, without help texts. `given` outlives the app.
void add_vllm_options(CLI::App& app, VllmOptions& given);

// A sentence for each that was given: "--seed: ...". Throws Error(usage) for a value that asks for what is not done.
std::vector<std::string> explain_vllm_options(const VllmOptions& given);

}  // namespace headroom
