#include "arguments/vllm_options.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "base/error.h"

namespace headroom {
namespace {

enum class Takes : uint8_t { nothing, value };

struct VllmOption {
  const char* name;
  Takes takes;
  const char* values;    // accepted values, each between spaces; "*": all; "": none, also for a flag
  const char* sentence;  // how headroom behaves; for a refusal, what to do instead
};

constexpr Takes kFlag = Takes::nothing, kValue = Takes::value;

constexpr VllmOption kOptions[] = {
    {"--allow-credentials", kFlag, "*", "keys come in headers, no cookies are read"},
    {"--allowed-headers", kValue, "*", "with --allowed-origins every header is allowed"},
    {"--allowed-methods", kValue, "*", "with --allowed-origins every method is allowed"},
    {"--cpu-offload-gb", kValue, " 0 ", "use --host-memory or --disk-memory DIR:SIZE to keep weights off the device"},
    {"--data-parallel-size", kValue, " 1 ", "one process serves: start several behind a proxy"},
    {"--disable-log-requests", kFlag, "*", "--quiet leaves out the line of each request"},
    {"--disable-log-stats", kFlag, "*", "figures are at /metrics, none are logged"},
    {"--disable-uvicorn-access-log", kFlag, "*", "--quiet leaves out the line of each request"},
    {"--distributed-executor-backend", kValue, "*", "one process serves"},
    {"--dtype", kValue, " auto ", "use --precision 32-true, bf16-true or 16-true for the type of weights"},
    {"--enable-auto-tool-choice", kFlag, "*", "tool calls are parsed whenever a request has tools"},
    {"--enable-chunked-prefill", kFlag, "*", "prompts are always read in chunks"},
    {"--enable-prefix-caching", kFlag, "*", "prefixes are always kept, inside the pool"},
    {"--enforce-eager", kFlag, "*", "there are no graphs whose memory this would save"},
    {"--generation-config", kValue, "*", "each request sets its sampling; defaults are OpenAI's"},
    {"--guided-decoding-backend", kValue, "*", "grammars are compiled by headroom itself"},
    {"--load-format", kValue, " auto safetensors gguf ", "weights are read from safetensors or GGUF"},
    {"--max-log-len", kValue, "*", "prompts are never logged"},
    {"--no-enable-chunked-prefill", kFlag, "", "leave it out: prompts are always read in chunks"},
    {"--no-enable-log-requests", kFlag, "*", "--quiet leaves out the line of each request"},
    {"--no-enable-prefix-caching", kFlag, "", "leave it out: prefixes take no memory besides the pool"},
    {"--pipeline-parallel-size", kValue, " 1 ", "one device serves: leave it out"},
    {"--quantization", kValue, "", "use --technique quantize-weights=int8, or serve a GGUF file"},
    {"--root-path", kValue, "*", "paths are the same behind a proxy, which must remove its prefix"},
    {"--seed", kValue, "*", "each request has its own seed, or a random one"},
    {"--swap-space", kValue, "*", "sequences are parked by --admission balanced, in --park-memory"},
    {"--tensor-parallel-size", kValue, " 1 ", "one device serves: leave it out"},
    {"--tokenizer", kValue, "", "leave it out: the tokenizer is that of the model's folder"},
    {"--tokenizer-mode", kValue, " auto slow ", "the tokenizer is that of the model's folder"},
    {"--tool-call-parser", kValue, " hermes llama3_json ",
     "tool calls are parsed in the formats of Hermes, Qwen and Llama 3"},
    {"--trust-remote-code", kFlag, "*", "no code of a model is run"},
    {"--uvicorn-log-level", kValue, "*", "--quiet leaves out the line of each request"},
};

bool takes(const VllmOption& option, const std::string& value) {
  const std::string_view values = option.values;
  return values == "*" || (!values.empty() && values.find(" " + value + " ") != std::string_view::npos);
}

}  // namespace

void add_vllm_options(CLI::App& app, VllmOptions& given) {
  for (const VllmOption& option : kOptions) {
    const std::string name = option.name;
    if (option.takes == Takes::nothing)
      app.add_flag_callback(name, [&given, name] { given.emplace_back(name, ""); })->group("");
    else
      app.add_option_function<std::string>(
             name, [&given, name](const std::string& value) { given.emplace_back(name, value); })
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
          ->group("");
  }
}

std::vector<std::string> explain_vllm_options(const VllmOptions& given) {
  std::vector<std::string> sentences;
  for (const auto& [name, value] : given) {
    const VllmOption* option = std::begin(kOptions);
    while (option != std::end(kOptions) && name != option->name) ++option;
    HR_CHECK(option != std::end(kOptions), "no option {}", name);
    if (!takes(*option, value))
      throw Error(ErrorKind::usage, fmt::format("{}{}{} is not supported", name, value.empty() ? "" : " ", value),
                  option->sentence);
    sentences.push_back(fmt::format("{}: {}", name, option->sentence));
  }
  return sentences;
}

}  // namespace headroom
