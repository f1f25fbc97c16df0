// Edits of Python scripts and command lines.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "doctor/config/patch_text.h"
#include "doctor/config/python_calls.h"
#include "doctor/config/setting.h"
#include "formats/document_command.h"

namespace headroom::doctor {
namespace {

// A Python expression. Numbers, truth values, symbols and brackets are kept; anything else becomes a string.
std::string python_value(const std::string& value, char old_quote) {
  if (value == "true" || value == "false") return value == "true" ? "True" : "False";
  if (value == "null") return "None";
  const bool plain = value == "True" || value == "False" || value == "None" || real_number(value) ||
                     value.starts_with("torch.") ||
                     (!value.empty() && std::string_view("[({\"'").find(value[0]) != std::string_view::npos);
  if (plain) return value;
  const char quote = old_quote == '\'' ? '\'' : '"';
  std::string result(1, quote);
  for (const char c : value) {
    if (c == quote || c == '\\') result += '\\';
    result += c;
  }
  return result + quote;
}

std::string shell_word(const std::string& value) {
  if (!value.empty() && value.find_first_of(" \t\n'\"$\\;&|<>()#*?`") == std::string::npos) return value;
  std::string result = "'";
  for (const char c : value) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

size_t line_start(const std::string& text, size_t at) {
  const size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  return before == std::string::npos ? 0 : before + 1;
}

std::string indentation(const std::string& text, size_t at) {
  const size_t start = line_start(text, at);
  return text.substr(start, std::min(text.find_first_not_of(" \t", start), text.size()) - start);
}

// The call whose callee ends in `callee`, at that line if one is given, else the last one.
const PythonCall* find_call(const PythonScript& script, const std::string& callee, int64_t line) {
  const PythonCall* found = nullptr;
  for (const PythonCall& call : script.calls) {
    const bool same =
        call.callee == callee || (call.callee.size() > callee.size() && call.callee.ends_with("." + callee));
    if (same && (!found || line == 0 || call.line <= line)) found = &call;
  }
  return found;
}

// Inserts after the last argument: on a separate line if the others are, else after a comma.
std::string add_argument(const std::string& text, const PythonCall& call, const std::string& argument) {
  const size_t close = static_cast<size_t>(call.end) - 1;
  if (call.arguments.empty()) return splice(text, static_cast<int64_t>(close), static_cast<int64_t>(close), argument);
  const auto& last = call.arguments.back().value;
  const auto end = static_cast<size_t>(last.end);
  const size_t open = text.find('(', static_cast<size_t>(call.begin));
  const bool own_lines = text.find('\n', open) < end;
  const size_t comma = text.find_first_not_of(" \t\r\n", end);
  const bool has_comma = comma != std::string::npos && comma < close && text[comma] == ',';
  const std::string lead = own_lines ? "\n" + indentation(text, end) : " ";
  const size_t at = has_comma ? comma + 1 : end;
  const std::string tail = has_comma && own_lines ? "," : "";
  // A comment after the last argument stays on its line.
  size_t after = at;
  if (own_lines) {
    const size_t stop = std::min(text.find('\n', at), close);
    const size_t comment = text.find('#', at);
    if (comment < stop) after = stop;
  }
  const std::string separator = has_comma ? "" : ",";
  return text.substr(0, at) + separator + text.substr(at, after - at) + lead + argument + tail + text.substr(after);
}

bool names_option(const std::string& word, const std::string& key) {
  return word.starts_with("-") && table_key(word.substr(0, word.find('='))) == table_key(key) &&
         word.find_first_not_of('-') != std::string::npos;
}

// The command that has the option, else the one with the most options.
const ShellCommand* find_command(const std::vector<ShellCommand>& commands, const std::string& key) {
  const ShellCommand* best = nullptr;
  int64_t most = -1;
  for (const ShellCommand& command : commands) {
    if (command.words[0].text == "export" || command.words[0].text == "echo" || command.words[0].text == "source")
      continue;
    int64_t score = 0;
    for (const CommandWord& word : command.words) {
      score += word.text.starts_with("-") || word.text.find('=') != std::string::npos;
      if (names_option(word.text, key)) score += 1'000'000;
    }
    if (score > most) {
      most = score;
      best = &command;
    }
  }
  return best;
}

// An option without a value is a flag: "true" keeps it, "false" removes it.
bool is_truth(const std::string& value) { return lower(value) == "true" || lower(value) == "false"; }

std::string remove_words(const std::string& text, int64_t begin, int64_t end) {
  size_t from = static_cast<size_t>(begin);
  while (from > 0 && (text[from - 1] == ' ' || text[from - 1] == '\t')) --from;
  // An option on a separate line is removed with its line continuation.
  if (from >= 2 && text[from - 1] == '\n' && text[from - 2] == '\\') {
    from -= 2;
    while (from > 0 && text[from - 1] == ' ') --from;
  }
  return text.substr(0, from) + text.substr(static_cast<size_t>(end));
}

std::string replace_option(const std::string& name, const std::string& text, const std::vector<CommandWord>& words,
                           size_t at, const Edit& edit) {
  const CommandWord& option = words[at];
  const size_t equals = option.text.find('=');
  const bool separate = equals == std::string::npos && at + 1 < words.size() && !words[at + 1].text.starts_with("--");
  if (option.end == 0) refuse(name, option.line, edit.key, "it comes from a variable");
  const bool flag =
      equals == std::string::npos && (!separate || (is_truth(edit.value) && !is_truth(words[at + 1].text)));
  if (edit.remove || (flag && lower(edit.value) == "false"))
    return remove_words(text, option.begin, flag || !separate ? option.end : words[at + 1].end);
  if (flag && lower(edit.value) == "true") return text;
  if (equals != std::string::npos) {
    const size_t written = text.find('=', static_cast<size_t>(option.begin));
    return splice(text, static_cast<int64_t>(written) + 1, option.end, shell_word(edit.value));
  }
  if (!separate) return splice(text, option.end, option.end, " " + shell_word(edit.value));
  if (words[at + 1].end == 0) refuse(name, option.line, edit.key, "its value comes from a variable");
  return splice(text, words[at + 1].begin, words[at + 1].end, shell_word(edit.value));
}

std::string patch_assignment(const std::string& name, const std::string& text, const std::vector<CommandWord>& words,
                             const Edit& edit, bool& done) {
  for (size_t i = words.size(); i > 0; --i) {
    const CommandWord& word = words[i - 1];
    if (!word.text.starts_with(edit.key + "=")) continue;
    done = true;
    if (word.end == 0) refuse(name, word.line, edit.key, "it comes from a variable");
    const std::string value = edit.key + "=" + shell_word(edit.value);
    return edit.remove ? remove_words(text, word.begin, word.end) : splice(text, word.begin, word.end, value);
  }
  return text;
}

// #SBATCH lines are comments to the shell.
std::string patch_sbatch(const std::string& text, const Edit& edit, bool& done) {
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string line = text.substr(start, end - start);
    const size_t option = line.find("-");
    if (line.starts_with("#SBATCH") && option != std::string::npos) {
      const size_t stop = std::min(line.find_first_of("= \t", option), line.size());
      if (table_key(line.substr(option, stop - option)) == table_key(edit.key)) {
        done = true;
        const char separator = stop < line.size() ? line[stop] : '=';
        return splice(text, static_cast<int64_t>(start), static_cast<int64_t>(end),
                      line.substr(0, stop) + separator + edit.value);
      }
    }
    start = end + 1;
  }
  return text;
}

}  // namespace

std::string patch_python(const std::string& name, const std::string& text, const Edit& edit) {
  const PythonScript script = read_python_calls(text, name);
  const size_t dot = edit.key.rfind('.');
  if (edit.remove) refuse(name, 1, edit.key, "arguments of Python are set, not removed");
  if (dot == std::string::npos) {  // a variable at the top of the script
    for (size_t i = script.assignments.size(); i > 0; --i) {
      const PythonAssignment& made = script.assignments[i - 1];
      if (made.name != edit.key || made.value.end <= made.value.begin) continue;
      const char quote = text[static_cast<size_t>(made.value.begin)];
      return splice(text, made.value.begin, made.value.end, python_value(edit.value, quote));
    }
    refuse(name, 1, edit.key, "no such variable");
  }
  const PythonCall* call = find_call(script, edit.key.substr(0, dot), edit.line);
  if (!call) refuse(name, std::max<int64_t>(1, edit.line), edit.key, "no such call");
  const std::string argument = edit.key.substr(dot + 1);
  for (const auto& [key, value] : call->arguments)
    if (key == argument && value.end > value.begin)
      return splice(text, value.begin, value.end, python_value(edit.value, text[static_cast<size_t>(value.begin)]));
  return add_argument(text, *call, argument + "=" + python_value(edit.value, '"'));
}

std::string patch_command(const std::string& name, const std::string& text, const Edit& edit) {
  bool done = false;
  std::string patched = patch_sbatch(text, edit, done);
  if (done) return patched;
  const std::vector<ShellCommand> commands = parse_shell_commands(text, name);
  const ShellCommand* command = find_command(commands, edit.key);
  if (!command) refuse(name, 1, edit.key, "there is no command");
  const std::vector<CommandWord>& words = command->words;
  for (size_t i = words.size(); i > 0; --i)
    if (names_option(words[i - 1].text, edit.key)) return replace_option(name, text, words, i - 1, edit);
  if (!edit.key.starts_with("-")) {
    patched = patch_assignment(name, text, words, edit, done);
    if (done) return patched;
  }
  const bool off = edit.key.starts_with("-") && lower(edit.value) == "false";
  if (edit.remove || off) return text;
  // Appends after the last word, in the style of the others: one per line if they are.
  const CommandWord* last = nullptr;
  for (const CommandWord& word : words)
    if (word.end > 0 && (!last || word.end > last->end)) last = &word;
  if (!last) refuse(name, 1, edit.key, "its words come from variables");
  const size_t start = line_start(text, static_cast<size_t>(last->begin));
  const bool own_lines = start >= 2 && text[start - 2] == '\\';
  const std::string lead = own_lines ? " \\\n" + indentation(text, static_cast<size_t>(last->begin)) : " ";
  std::string words_added = edit.key;
  if (!edit.key.starts_with("-")) {
    words_added += "=" + shell_word(edit.value);
  } else if (!edit.value.empty()) {
    words_added += " " + shell_word(edit.value);
  }
  return splice(text, last->end, last->end, lead + words_added);
}

}  // namespace headroom::doctor
