#include "formats/document_command.h"

#include <algorithm>

#include "formats/document_limits.h"

namespace headroom {
namespace {

bool is_name_start(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_name(char c) { return is_name_start(c) || (c >= '0' && c <= '9'); }

// Length of a leading NAME= of an assignment, 0 if the word has none.
size_t assignment_length(std::string_view word) {
  if (word.empty() || !is_name_start(word[0])) return 0;
  size_t i = 1;
  while (i < word.size() && is_name(word[i])) ++i;
  return i < word.size() && word[i] == '=' ? i + 1 : 0;
}

class ShellReader {
 public:
  ShellReader(std::string_view text, const std::string& source, std::map<std::string, std::string> variables)
      : text_(text), source_(source), variables_(std::move(variables)) {}

  std::vector<ShellCommand> read() {
    while (at_ < text_.size()) step();
    end_command();
    return std::move(commands_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void step() {
    const char c = peek();
    if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      at_ += peek(1) == '\n' ? 2 : 3;
      ++line_;
    } else if (c == '\n') {
      end_command();
      ++line_;
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '#') {
      while (at_ < text_.size() && peek() != '\n') ++at_;
    } else if (c == ';' || c == '|' || c == '(' || c == ')') {
      end_command();
      ++at_;
    } else if (c == '&') {
      if (peek(1) != '>') end_command();
      ++at_;
    } else if (c == '>' || c == '<') {
      skip_redirection();
    } else {
      read_word();
    }
  }

  // 2>&1, > file, <<EOF: the target is not an argument.
  void skip_redirection() {
    const bool here_document = peek() == '<' && peek(1) == '<' && peek(2) != '<';
    while (peek() == '>' || peek() == '<' || peek() == '&' || peek() == '-') ++at_;
    while (peek() == ' ' || peek() == '\t') ++at_;
    CommandWord target = scan_word();
    if (here_document && !target.text.empty()) skip_here_document(target.text);
  }

  // The lines from the next one up to the closing word are data.
  void skip_here_document(const std::string& closing) {
    while (at_ < text_.size() && peek() != '\n') step();
    while (at_ < text_.size()) {
      ++line_;
      ++at_;
      const size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view content = text_.substr(at_, end - at_);
      content.remove_prefix(std::min(content.find_first_not_of('\t'), content.size()));
      at_ = end;
      if (content == closing) return;
    }
  }

  void read_word() {
    CommandWord word = scan_word();
    if (++words_ > kMaxDocumentValues)
      throw Error(ErrorKind::format, fmt::format("{}:{}: more than {} words", source_, line_, kMaxDocumentValues),
                  "check that the path names a script");
    // A file descriptor before a redirection.
    if ((peek() == '>' || peek() == '<') && word.text.find_first_not_of("0123456789") == std::string::npos) return;
    const size_t name = assignment_length(word.text);
    if (current_.words.empty() && name > 0 && name == word.text.size() && peek() == '(')
      return read_array(word.text.substr(0, name - 1));
    if (current_.words.empty() && name > 0) {
      current_.assignments.push_back(word);
      current_.environment[word.text.substr(0, name - 1)] = word.text.substr(name);
      return;
    }
    add_word(std::move(word));
  }

  // An unquoted variable's text is split at its blanks; "${NAME[@]}" becomes the words of an array.
  void add_word(CommandWord word) {
    const std::vector<CommandWord>* array = array_of(word);
    if (array) {
      if (static_cast<int64_t>(array->size()) > kMaxDocumentValues - words_) return;
      words_ += static_cast<int64_t>(array->size());
      current_.words.insert(current_.words.end(), array->begin(), array->end());
      return;
    }
    if (!splits_ || word.text.find_first_of(" \t\n") == std::string::npos) {
      if (!word.text.empty() || word.end > word.begin) current_.words.push_back(std::move(word));
      return;
    }
    size_t start = 0;
    while ((start = word.text.find_first_not_of(" \t\n", start)) != std::string::npos) {
      const size_t end = std::min(word.text.find_first_of(" \t\n", start), word.text.size());
      current_.words.push_back({word.text.substr(start, end - start), word.line, 0, 0, word.unset_variable});
      ++words_;
      start = end;
    }
  }

  const std::vector<CommandWord>* array_of(const CommandWord& word) const {
    const std::string_view text = word.text;
    if (!word.unset_variable || !text.starts_with("${") || (!text.ends_with("[@]}") && !text.ends_with("[*]}")))
      return nullptr;
    const auto found = arrays_.find(std::string(text.substr(2, text.size() - 6)));
    return found == arrays_.end() ? nullptr : &found->second;
  }

  // NAME=( words )
  void read_array(const std::string& name) {
    ShellCommand outside = std::move(current_);
    current_ = {};
    current_.words.push_back({});  // so that NAME=value among the words is not taken for an assignment
    ++at_;
    while (at_ < text_.size() && peek() != ')') {
      if (peek() == '\n') {
        ++line_;
        ++at_;
      } else if (std::string_view(";|&<>(").find(peek()) != std::string_view::npos) {
        ++at_;
      } else {
        step();
      }
    }
    ++at_;
    std::vector<CommandWord> words(current_.words.begin() + 1, current_.words.end());
    if (arrays_.size() < 1000) arrays_[name] = std::move(words);
    current_ = std::move(outside);
  }

  CommandWord scan_word() {
    CommandWord word;
    splits_ = false;
    word.line = line_;
    word.begin = static_cast<int64_t>(at_);
    while (at_ < text_.size() && std::string_view(" \t\r\n;|&()<>").find(peek()) == std::string_view::npos) {
      if (peek() == '\'') {
        scan_single_quotes(word);
      } else if (peek() == '"') {
        scan_double_quotes(word);
      } else if (peek() == '$') {
        scan_variable(word, false);
      } else if (peek() == '\\') {
        if (peek(1) == '\n') break;
        ++at_;
        if (at_ < text_.size()) word.text += text_[at_++];
      } else {
        word.text += text_[at_++];
      }
    }
    word.end = static_cast<int64_t>(at_);
    return word;
  }

  [[noreturn]] void refuse_quote(int64_t line) const {
    throw Error(ErrorKind::format, fmt::format("{}:{}: an unclosed quote", source_, line), "close the quote");
  }
  void scan_single_quotes(CommandWord& word) {
    const int64_t line = line_;
    for (++at_; peek() != '\''; ++at_) {
      if (at_ >= text_.size()) refuse_quote(line);
      line_ += peek() == '\n';
      word.text += peek();
    }
    ++at_;
  }
  void scan_double_quotes(CommandWord& word) {
    const int64_t line = line_;
    ++at_;
    while (peek() != '"') {
      if (at_ >= text_.size()) refuse_quote(line);
      if (peek() == '$') {
        scan_variable(word, true);
        continue;
      }
      if (peek() == '\\' && at_ + 1 < text_.size() &&
          std::string_view("\"\\$`\n").find(peek(1)) != std::string_view::npos) {
        ++at_;
        if (peek() == '\n') {
          ++line_;
          ++at_;
          continue;
        }
      }
      line_ += peek() == '\n';
      word.text += text_[at_++];
    }
    ++at_;
  }

  // $NAME, ${NAME}, ${NAME:-default}; $(...) and the rest stay as written.
  void scan_variable(CommandWord& word, bool quoted) {
    const size_t start = at_++;
    std::string name, otherwise;
    bool has_default = false;
    if (peek() == '{') {
      const size_t close = text_.find('}', at_);
      if (close == std::string_view::npos) {
        word.text += '$';
        word.unset_variable = true;
        return;
      }
      const std::string_view inside = text_.substr(at_ + 1, close - at_ - 1);
      size_t length = 0;
      while (length < inside.size() && is_name(inside[length])) ++length;
      name = std::string(inside.substr(0, length));
      has_default = inside.substr(length, 2) == ":-";
      if (has_default) otherwise = std::string(inside.substr(length + 2));
      line_ += std::count(inside.begin(), inside.end(), '\n');
      at_ = close + 1;
    } else if (peek() == '(') {
      skip_substitution();
    } else {
      while (is_name(peek())) name += text_[at_++];
    }
    const auto known = variables_.find(name);
    if (known != variables_.end() && spend(known->second.size())) {
      word.text += known->second;
      splits_ = splits_ || !quoted;
    } else if (has_default) {
      word.text += otherwise;
    } else {
      word.text += std::string(text_.substr(start, at_ - start));
      word.unset_variable = true;
    }
  }
  void skip_substitution() {
    int depth = 0;
    do {
      depth += peek() == '(';
      depth -= peek() == ')';
      line_ += peek() == '\n';
      ++at_;
    } while (depth > 0 && at_ < text_.size());
  }

  void end_command() {
    ShellCommand command = std::move(current_);
    current_ = {};
    if (command.words.empty()) {
      for (const auto& [name, value] : command.environment) remember(name, value);
      return;
    }
    const std::string& head = command.words[0].text;
    if (head == "export" || head == "declare" || head == "readonly" || head == "local") {
      for (const CommandWord& word : command.words) {
        const size_t name = assignment_length(word.text);
        if (name == 0) continue;
        remember(word.text.substr(0, name - 1), word.text.substr(name));
        exported_[word.text.substr(0, name - 1)] = word.text.substr(name);
      }
    }
    for (const auto& [name, value] : exported_)
      if (spend(name.size() + value.size())) command.environment.emplace(name, value);
    commands_.push_back(std::move(command));
  }
  // Text repeated by variables is counted in one budget.
  bool spend(size_t bytes) {
    budget_ -= static_cast<int64_t>(bytes) + 16;
    return budget_ >= 0;
  }
  // Values are bounded, so that variables that double themselves stay small.
  void remember(const std::string& name, const std::string& value) {
    if (value.size() <= 4096 && variables_.size() < 10'000) variables_[name] = value;
  }

  std::string_view text_;
  const std::string& source_;
  std::map<std::string, std::string> variables_, exported_;
  std::vector<ShellCommand> commands_;
  std::map<std::string, std::vector<CommandWord>> arrays_;
  ShellCommand current_;
  bool splits_ = false;  // of the word scanned last: holds an unquoted variable
  size_t at_ = 0;
  int64_t line_ = 1;
  int64_t words_ = 0;
  int64_t budget_ = kMaxDocumentBytes;
};

}  // namespace

std::vector<ShellCommand> parse_shell_commands(std::string_view text, const std::string& source,
                                               std::map<std::string, std::string> variables) {
  refuse_unreadable_document(text, source);
  return ShellReader(text, source, std::move(variables)).read();
}

}  // namespace headroom
