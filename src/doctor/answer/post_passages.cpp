#include "doctor/answer/post_passages.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <utility>

#include "base/error.h"
#include "doctor/answer/post_lines.h"
#include "formats/document.h"

namespace headroom::doctor {
namespace {

constexpr size_t kMostLines = 400;    // of one call or object
constexpr size_t kMostPassages = 64;  // a log with more prints something else

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }
bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Skips a dotted name and the blanks behind it. Returns whether there is one.
bool skip_name(std::string_view& text) {
  if (text.empty() || !starts_name(text.front())) return false;
  text.remove_prefix(
      std::min(static_cast<size_t>(std::find_if_not(text.begin(), text.end(), in_name) - text.begin()), text.size()));
  return true;
}
void skip_blanks(std::string_view& text) { text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size())); }

bool begins_with_a_word(std::string_view& text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words)
    if (text.starts_with(word)) {
      text.remove_prefix(word.size());
      skip_blanks(text);
      return true;
    }
  return false;
}

// "name(", "a, b = name(": prose has more than one word before the bracket.
bool starts_call(std::string_view line) {
  skip_blanks(line);
  begins_with_a_word(line, {"with ", "return ", "await "});
  while (skip_name(line)) {
    if (line.starts_with('(')) return true;
    skip_blanks(line);
    if (line.starts_with(',')) {
      line.remove_prefix(1);
      skip_blanks(line);
      continue;
    }
    if (!line.starts_with('=') || line.starts_with("==")) return false;
    line.remove_prefix(1);
    skip_blanks(line);
    begins_with_a_word(line, {"await "});
    return skip_name(line) && line.starts_with('(');
  }
  return false;
}

// "name = 4", "name = \"a\"", "from a import b".
bool plain_statement(std::string_view line) {
  const std::string_view text = trimmed(line);
  if (text.starts_with("from ")) return text.find(" import ") != std::string_view::npos && !text.ends_with('.');
  if (text.starts_with("import ")) return std::count(text.begin(), text.end(), ' ') <= 3 && !text.ends_with('.');
  std::string_view rest = text;
  if (!skip_name(rest)) return false;
  skip_blanks(rest);
  if (!rest.starts_with('=') || rest.starts_with("==")) return false;
  rest.remove_prefix(1);
  skip_blanks(rest);
  if (rest.empty()) return false;
  for (const std::string_view word : {"True", "False", "None", "torch."})
    if (rest.starts_with(word)) return true;
  return std::isdigit(static_cast<unsigned char>(rest.front())) != 0 ||
         std::string_view("\"'[-").find(rest.front()) != std::string_view::npos;
}

// "Should I add", "Then:": a sentence between two pieces of code.
bool is_prose(std::string_view line) {
  constexpr std::string_view kKeywords[] = {"for",    "if",    "def",    "class", "while",  "with",  "try",
                                            "except", "else",  "elif",   "del",   "return", "raise", "assert",
                                            "async",  "await", "global", "from",  "import", "print", "finally"};
  const std::string_view text = trimmed(line);
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  const auto word_end = std::find_if_not(text.begin(), text.end(), is_letter);
  const std::string_view word = text.substr(0, static_cast<size_t>(word_end - text.begin()));
  if (word.empty() || std::find(std::begin(kKeywords), std::end(kKeywords), word) != std::end(kKeywords)) return false;
  if (text.ends_with(':')) return true;
  std::string_view rest = text.substr(word.size());
  if (!rest.starts_with(' ')) return false;
  skip_blanks(rest);
  return !rest.empty() && is_letter(rest.front());
}

// Counts the brackets of Python or JSON text, line by line.
class Brackets {
 public:
  // False: a string without its end, or text behind the last bracket that continues no expression.
  bool take(std::string_view line) {
    for (size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      if (c == '#') break;
      if (c == '"' || c == '\'') {
        i = end_of_string(line, i);
        if (i == std::string_view::npos) return false;
      } else if (c == '(' || c == '[' || c == '{') {
        ++depth_;
      } else if (c == ')' || c == ']' || c == '}') {
        if (--depth_ == 0 && !goes_on(line.substr(i + 1))) return false;
      }
    }
    return depth_ >= 0;
  }
  bool open() const { return depth_ > 0; }

 private:
  static size_t end_of_string(std::string_view line, size_t at) {
    const char quote = line[at];
    for (size_t i = at + 1; i < line.size(); ++i) {
      if (line[i] == '\\')
        ++i;
      else if (line[i] == quote)
        return i;
    }
    return std::string_view::npos;
  }
  static bool goes_on(std::string_view rest) {
    skip_blanks(rest);
    return rest.empty() || std::string_view(".,:)]}#;\r").find(rest.front()) != std::string_view::npos;
  }

  int depth_ = 0;
};

bool in_key(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '/';
}

// "key:", "key: value". Keys of configurations begin with a small letter, words of prose and reports often do not.
bool is_key(std::string_view line) {
  const std::string_view text = trimmed(line);
  if (text.empty() || (!(text.front() >= 'a' && text.front() <= 'z') && text.front() != '_')) return false;
  const size_t end = static_cast<size_t>(std::find_if_not(text.begin(), text.end(), in_key) - text.begin());
  return end < text.size() && text[end] == ':' && (end + 1 == text.size() || text[end + 1] == ' ');
}
bool is_item(std::string_view line) {
  const std::string_view text = trimmed(line);
  return text == "-" || text.starts_with("- ");
}
bool is_comment(std::string_view line) { return trimmed(line).starts_with('#'); }
bool opens_block(std::string_view line) {
  const std::string_view text = trimmed(line);
  return text.ends_with("|") || text.ends_with(">") || text.ends_with("|-") || text.ends_with(">-");
}

// "key: [", "- {": a list or map in brackets, which may go on over several lines.
bool opens_flow(std::string_view line) {
  std::string_view value = trimmed(line);
  if (is_item(line)) value = trimmed(value.substr(1));
  const auto in_brackets = [&] { return value.starts_with('[') || value.starts_with('{'); };
  if (const size_t colon = value.find(": "); !in_brackets() && colon != std::string_view::npos)
    value = trimmed(value.substr(colon + 1));
  return in_brackets();
}

class PassageFinder {
 public:
  explicit PassageFinder(std::string_view post) : lines_(lines_of_post(post)), taken_(lines_.size(), false) {}

  std::vector<Passage> find() {
    for (size_t at = 0; at < lines_.size(); ++at)
      if (free(at)) find_object(at);
    for (size_t at = 0; at < lines_.size();) at = find_code(at);
    for (size_t at = 0; at < lines_.size(); ++at)
      if (free(at) && is_key(lines_[at].text)) find_document(at);
    return std::move(passages_);
  }

 private:
  bool free(size_t at) const { return !taken_[at] && !lines_[at].foreign && !lines_[at].fence; }

  // The line after the brackets that open in `at`, at its byte `from` or later; 0 where they do not close.
  size_t end_of_brackets(size_t at, size_t from) const {
    Brackets brackets;
    for (size_t i = at; i < std::min(lines_.size(), at + kMostLines) && free(i); ++i) {
      if (!brackets.take(lines_[i].text.substr(i == at ? from : 0))) return 0;
      if (!brackets.open()) return i + 1;
    }
    return 0;
  }

  void add(SourceKind kind, size_t begin, size_t end, std::string text, bool cut) {
    if (passages_.size() == kMostPassages || introduced_as_another(lines_, begin, end)) return;
    passages_.push_back({kind, static_cast<int64_t>(begin) + 1, std::string(begin, '\n') + text, cut});
  }

  // JSON: "{" on a line, alone or after "json =".
  void find_object(size_t at) {
    const std::string_view text = trimmed(lines_[at].text);
    const bool alone = text == "{" || text.starts_with("{\"") || text.starts_with("{ ");
    if (!alone && !text.ends_with("= {")) return;
    const size_t opens = alone ? lines_[at].text.find('{') : lines_[at].text.rfind('{');
    const size_t end = end_of_brackets(at, opens);
    if (end == 0) return;
    std::string object(lines_[at].text.substr(opens));
    for (size_t i = at + 1; i < end; ++i) object += "\n" + std::string(lines_[i].text);
    try {
      parse_json_document(object, "");
    } catch (const Error&) {
      return;
    }
    std::fill(taken_.begin() + static_cast<std::ptrdiff_t>(at), taken_.begin() + static_cast<std::ptrdiff_t>(end),
              true);
    if (end - at > 1 || object.find("zero_optimization") != std::string::npos)
      add(SourceKind::json, at, end, std::move(object), false);
  }

  // The statements from `at` up to the end of the block or to a sentence. Returns the line behind them.
  size_t find_code(size_t at) {
    size_t end = at, first = lines_.size(), last = at;
    bool cut = false;
    std::string text;
    while (end < lines_.size() && lines_[end].block == lines_[at].block) {
      const size_t begin = end;
      const bool statement = free(begin) && (starts_call(lines_[begin].text) || plain_statement(lines_[begin].text));
      const size_t closes = statement ? end_of_brackets(begin, 0) : 0;
      end = std::max(begin + 1, closes);
      if (closes == 0 && is_prose(lines_[begin].text)) break;
      if (closes == 0) continue;
      first = std::min(first, begin);
      text += std::string(begin - std::max(first, last), '\n');
      for (size_t i = begin; i < end; ++i) {
        cut = cut || (end - begin > 1 && lines_[i].text.find("...") != std::string_view::npos);
        text += std::string(lines_[i].text) + "\n";
        taken_[i] = true;
      }
      last = end;
    }
    if (first < lines_.size()) add(SourceKind::python, first, last, std::move(text), cut);
    return end;
  }

  // The line after the brackets that a document's value opens in `at`; at + 1 where there are none, or no end.
  size_t end_of_flow(size_t at) const {
    const std::string_view line = lines_[at].text;
    if (!opens_flow(line)) return at + 1;
    const size_t end = end_of_brackets(at, line.find_first_of("[{"));
    return end > at && lines_[end - 1].block == block_ ? end : at + 1;
  }

  // Whether the line goes on with the document whose keys stand at `indent`.
  bool of_document(size_t at, size_t indent, bool in_text) const {
    const std::string_view line = lines_[at].text;
    if (!free(at) || lines_[at].block != block_) return false;
    if (trimmed(line).empty() || is_comment(line) || is_elision(line)) return true;
    const size_t here = indentation(line);
    if (here < indent) return false;
    if (is_key(line) || is_item(line)) return true;
    const char first = line[here];
    return here > indent && (in_text || std::string_view("[]{}\"'").find(first) != std::string_view::npos);
  }

  void find_document(size_t at) {
    const size_t indent = indentation(lines_[at].text);
    block_ = lines_[at].block;
    bool cut = false, in_text = false;
    std::string text;
    size_t end = at, last = at, length = 0, keys = 0, flow = at;  // flow: where an open list or map ends
    for (; end < lines_.size() && (end < flow || of_document(end, indent, in_text)); ++end) {
      const std::string_view line = lines_[end].text;
      const bool elision = is_elision(line), blank = trimmed(line).empty();
      cut = cut || elision;
      if (end >= flow) flow = end_of_flow(end);
      if (is_key(line)) in_text = opens_block(line);
      keys += is_key(line) ? 1 : 0;
      text += (elision || blank ? "" : std::string(line.substr(std::min(indent, indentation(line))))) + "\n";
      if (!blank) last = end, length = text.size();
      taken_[end] = true;
    }
    text.resize(length);
    if (keys > 1) add(SourceKind::yaml, at, last + 1, std::move(text), cut);
  }

  std::vector<PostLine> lines_;
  std::vector<bool> taken_;
  int block_ = 0;
  std::vector<Passage> passages_;
};

}  // namespace

std::vector<Passage> configuration_passages(std::string_view post) { return PassageFinder(post).find(); }

}  // namespace headroom::doctor
