#include "doctor/answer/log_command.h"

#include <algorithm>
#include <cctype>

namespace headroom::doctor {
namespace {

constexpr size_t kLongestArguments = 16384;

// Splits Python arguments at commas outside quotes and brackets, up to the closing bracket.
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
  return {};  // the text is cut off: no argument is certain
}

std::string without_quotes(std::string text) {
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front())
    return text.substr(1, text.size() - 2);
  return text;
}

// Turns keyword arguments into options. Skips None, False and lists.
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
  const char* sign;    // occurs among the arguments
  const char* module;  // the module that takes them as options
};
constexpr Dump kDumps[] = {{"Namespace(", "gpu_memory_utilization=", "vllm.entrypoints.openai.api_server"},
                           {"ServerArgs(", "mem_fraction_static=", "sglang.launch_server"}};

// The text up to the next space outside quotes, with the quotes removed.
std::string next_word(const std::string& line, size_t& at) {
  std::string word;
  char quote = 0;
  for (; at < line.size() && (quote || line[at] != ' '); ++at) {
    const char c = line[at];
    if (quote ? c == quote : c == '\'' || c == '"')
      quote = quote ? 0 : c;
    else
      word += c;
  }
  while (at < line.size() && line[at] == ' ') ++at;
  return word;
}

bool is_variable(const std::string& word) {
  const size_t equals = word.find('=');
  return equals != std::string::npos && equals > 0 &&
         std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](unsigned char c) { return std::isupper(c) || std::isdigit(c) || c == '_'; });
}

// Whether these words are a command with options, as typed at a prompt, and not prose about one.
bool is_command(const std::vector<std::string>& words) {
  size_t at = 0;
  while (at < words.size() && (is_variable(words[at]) || words[at] == "sudo" || words[at] == "nohup")) ++at;
  if (at + 1 >= words.size()) return false;
  const std::string program = words[at].substr(words[at].rfind('/') + 1), &next = words[at + 1];
  const bool python = (program == "python" || program == "python3") && (next == "-m" || next.ends_with(".py"));
  const bool launched = program == "torchrun" || program == "deepspeed" || program == "llama-server" ||
                        program == "llamafactory-cli" || program == "text-generation-launcher";
  const bool named = (program == "accelerate" && next == "launch") || (program == "vllm" && next == "serve") ||
                     (program == "tune" && next == "run") || (program == "docker" && next == "run") ||
                     (program == "sglang" && next == "serve") || program == "litgpt" || program == "axolotl" ||
                     (program == "trl" && (next == "sft" || next == "dpo" || next == "grpo"));
  const bool options =
      std::any_of(words.begin(), words.end(), [](const std::string& w) { return w.starts_with("--"); });
  return options && (python || launched || named);
}

// The line at `at` with its backslash continuations; moves `at` past them.
std::string joined_line(const std::string& log, size_t& at) {
  std::string line;
  while (at < log.size() && line.size() < kLongestArguments) {
    const size_t end = std::min(log.find('\n', at), log.size());
    std::string piece = log.substr(at, end - at);
    at = end + 1;
    while (!piece.empty() && (piece.back() == ' ' || piece.back() == '\r')) piece.pop_back();
    const bool goes_on = !piece.empty() && piece.back() == '\\';
    if (goes_on) piece.pop_back();
    line += (line.empty() ? "" : " ") + piece;
    if (!goes_on) break;
  }
  return line;
}

bool behind_hash(const std::string& line) {
  const size_t begin = line.find_first_not_of(" \t");
  return begin != std::string::npos && line[begin] == '#';
}
// "# Run this file on 2 GPUs with:" of a configuration. What is typed at a root's prompt begins with a small letter, or
// with a variable.
bool is_sentence_behind_hash(const std::string& line) {
  const size_t begin = line.find_first_not_of(" #\t"), end = std::min(line.find(' ', begin), line.size());
  return behind_hash(line) && begin != std::string::npos && std::isupper(static_cast<unsigned char>(line[begin])) &&
         line.substr(begin, end - begin).find('=') == std::string::npos;
}

// Inline code, "`python train.py --lr 1` ends so": what stands between the marks.
std::string within_marks(std::string line) {
  const size_t open = line.find_first_not_of(" \t");
  if (open == std::string::npos || line[open] != '`' || line.compare(open, 3, "```") == 0) return line;
  return line.substr(open + 1, line.find('`', open + 1) - open - 1);
}

// The first line that is a typed command, with or without a prompt.
std::vector<std::string> typed_command(const std::string& log) {
  bool comment = false;  // of several lines: its commands explain the file
  for (size_t at = 0; at < log.size();) {
    const std::string line = within_marks(joined_line(log, at));
    comment = behind_hash(line) && (comment || is_sentence_behind_hash(line));
    size_t begin = line.find_first_not_of(" $>!#%+\t");
    if (comment || begin == std::string::npos || line.size() >= kLongestArguments) continue;
    std::vector<std::string> words;
    while (begin < line.size()) words.push_back(next_word(line, begin));
    if (is_command(words)) return words;
  }
  return {};
}

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
  return typed_command(log);
}

}  // namespace headroom::doctor
