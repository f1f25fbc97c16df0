#include "doctor/answer/ask_again.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace headroom::doctor {
namespace {

// A word quoted for a POSIX shell where it needs quotes.
std::string shell_word(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '/' || c == '.' || c == '_' || c == '-' || c == '=' || c == ':' || c == ',';
  });
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string options_of(const Request& request) {
  std::string text;
  const auto add = [&](const char* option, const std::string& value) {
    text += std::string(*option ? " " : "") + option + " " + shell_word(value);
  };
  const auto number = [&](const char* option, const std::optional<int64_t>& value) {
    if (value) add(option, std::to_string(*value));
  };
  for (const std::string& input : request.inputs) add("", input);
  for (const std::string& config : request.configs) add("--config", config);
  if (!request.gpu.empty()) add("--gpu", request.gpu);
  number("--gpus", request.gpus);
  if (!request.torch.empty()) add("--torch", request.torch);
  number("--capacity", request.capacity_bytes);
  number("--host-memory", request.host_bytes);
  number("--micro-batch-size", request.micro_batch);
  number("--max-seq-length", request.sequence);
  if (request.row != 1) add("--row", std::to_string(request.row));
  if (request.which_gpu) text += " --which-gpu";
  return text;
}

}  // namespace

std::string ask_for_model(const Request& request, const Case& incident) {
  if (!incident.job || incident.shape || !incident.messages.empty() || !incident.job->model.empty()) return {};
  std::string command = "headroom doctor" + options_of(request) + " --model NAME";
  if (request.command.empty()) return command;
  command += " --";
  for (const std::string& word : request.command) command += " " + shell_word(word);
  return command;
}

}  // namespace headroom::doctor
