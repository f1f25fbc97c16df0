#include "doctor/answer/log_command.h"

#include <algorithm>
#include <cctype>

namespace headroom::doctor {
namespace {

constexpr size_t kLongestArguments = 16384;

// Splits Python's arguments at the commas outside of quotes and brackets, up to the bracket that ends them.
std::vector<std::string> arguments_from(const std::string& text, size_t at) {
  std::vector<std::string> pieces(1);
  char quote = 0;
  int depth = 0;
  for (const size_t end = std::min(text.size(), at + kLongestArguments); at < end; ++at) {
    const char c = text[at];
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      if (depth-- == 0) return pieces;
    } else if (c == ',' && depth == 0) {
      pieces.emplace_back();
      continue;
    }
    if (!(pieces.back().empty() && c == ' ')) pieces.back() += c;
  }
  return {};  // cut: nothing is sure
}

std::string without_quotes(std::string text) {
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front())
    return text.substr(1, text.size() - 2);
  return text;
}

// Keyword arguments as options; what is None, False or a list says nothing.
std::vector<std::string> options_of(const std::vector<std::string>& arguments, std::vector<std::string> words) {
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    const std::string value = without_quotes(argument.substr(equals + 1));
    if (value.empty() || value == "None" || value == "False" || value.front() == '[' || value.front() == '{') continue;
    std::string option = "--" + argument.substr(0, equals);
    std::replace(option.begin(), option.end(), '_', '-');
    words.push_back(std::move(option));
    if (value != "True") words.push_back(value);
  }
  return words;
}

struct Dump {
  const char* start;
  const char* sign;    // stands among the arguments
  const char* module;  // that takes them as options
};
constexpr Dump kDumps[] = {{"Namespace(", "gpu_memory_utilization=", "vllm.entrypoints.openai.api_server"},
                           {"ServerArgs(", "mem_fraction_static=", "sglang.launch_server"}};

}  // namespace

std::vector<std::string> command_in_log(const std::string& log) {
  for (const Dump& dump : kDumps) {
    const size_t at = log.find(dump.start);
    if (at == std::string::npos) continue;
    const std::vector<std::string> arguments = arguments_from(log, at + std::string(dump.start).size());
    const bool known = std::any_of(arguments.begin(), arguments.end(),
                                   [&](const std::string& argument) { return argument.starts_with(dump.sign); });
    if (known) return options_of(arguments, {"python", "-m", dump.module});
  }
  for (size_t at = log.find("['"); at != std::string::npos; at = log.find("['", at + 1)) {
    const size_t end = log.find('\'', at + 2);
    if (end == std::string::npos) break;
    const std::string program = log.substr(at + 2, end - at - 2);
    const std::string base = program.substr(program.rfind('/') + 1);
    if (!base.starts_with("python") && base != "torchrun" && base != "deepspeed") continue;
    std::vector<std::string> words = arguments_from(log, at + 1);
    for (std::string& word : words) word = without_quotes(word);
    return words;
  }
  return {};
}

}  // namespace headroom::doctor
