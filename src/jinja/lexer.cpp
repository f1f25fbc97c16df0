#include "jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "jinja/literal.h"
#include "jinja/problem.h"
#include "jinja/text.h"

namespace headroom::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// Line ends become \n, and one at the end is dropped.
std::string normalized(std::string_view source) {
  std::string text = with_plain_line_ends(source);
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) root();
    add(TokenType::end);
    return std::move(tokens_);
  }

 private:
  enum class Tag { variable, block, comment };

  [[noreturn]] void fail_here(std::string what) const { throw ProblemAt{line_, std::move(what)}; }
  bool looking_at(std::string_view text, size_t at) const { return source_.compare(at, text.size(), text) == 0; }
  void add(TokenType type, std::string text = {}) { tokens_.push_back({type, line_, std::move(text), {}}); }

  // Moves to `to`, counting lines.
  void go(size_t to) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    at_ = to;
  }

  size_t after_space(size_t at) const {
    while (at < source_.size()) {
      size_t next = at;
      if (!is_space(next_point(source_, next))) break;
      at = next;
    }
    return at;
  }

  // Where the end mark at `at` ("%}", "-%}" or "+%}") and the white space that it removes end; npos if there is none.
  size_t tag_end(size_t at, std::string_view mark, bool trims_line) const {
    if (looking_at(mark, at)) {
      at += mark.size();
      return trims_line && at < source_.size() && source_[at] == '\n' ? at + 1 : at;
    }
    if (at >= source_.size() || !looking_at(mark, at + 1)) return std::string::npos;
    if (source_[at] == '-') return after_space(at + 1 + mark.size());
    return source_[at] == '+' && trims_line ? at + 1 + mark.size() : std::string::npos;
  }

  // Adds the text from at_ to `end` as data; a tag with this sign begins at `end`.
  void add_data(size_t end, char sign, bool is_variable) {
    std::string_view text = std::string_view(source_).substr(at_, end - at_);
    if (sign == '-') {
      text = strip(text, Side::right);
    } else if (sign != '+' && !is_variable) {
      const size_t line = text.rfind('\n') + 1;
      const bool at_line_begin = at_ == 0 || source_[at_ - 1] == '\n';
      if ((line > 0 || at_line_begin) && strip(text.substr(line), Side::left).empty()) text = text.substr(0, line);
    }
    if (!text.empty()) add(TokenType::data, std::string(text));
    go(end);
  }

  // Reads data up to the next tag, and the tag.
  void root() {
    size_t open = at_;
    for (;; ++open) {
      open = source_.find('{', open);
      if (open == std::string::npos) return add_data(source_.size(), '+', true);
      if (open + 1 < source_.size() && std::string_view("{%#").find(source_[open + 1]) != std::string_view::npos) break;
    }
    const char kind = source_[open + 1];
    const char sign = open + 2 < source_.size() ? source_[open + 2] : '\0';
    const bool signed_tag = sign == '-' || sign == '+';
    add_data(open, signed_tag ? sign : '\0', kind == '{');
    const size_t inside = open + (signed_tag ? 3 : 2);
    if (kind == '#') return comment(inside);
    if (kind == '%' && raw(inside)) return;
    add(kind == '{' ? TokenType::variable_begin : TokenType::block_begin);
    go(inside);
    tag(kind == '{');
  }

  void comment(size_t at) {
    if (const size_t mark = source_.find("#}", at); mark != std::string::npos) {
      const bool is_signed = mark > at && (source_[mark - 1] == '-' || source_[mark - 1] == '+');
      return go(tag_end(is_signed ? mark - 1 : mark, "#}", true));
    }
    fail_here("a comment that does not end");
  }

  // Where a tag with only this word ends, or npos.
  size_t word_tag_end(size_t at, std::string_view word, bool trims_line) const {
    at = after_space(at);
    if (!looking_at(word, at)) return std::string::npos;
    return tag_end(after_space(at + word.size()), "%}", trims_line);
  }

  bool raw(size_t inside) {
    const size_t begin = word_tag_end(inside, "raw", false);
    if (begin == std::string::npos) return false;
    const int line = line_;
    go(begin);
    for (size_t open = source_.find("{%", at_); open != std::string::npos; open = source_.find("{%", open + 1)) {
      const char sign = open + 2 < source_.size() ? source_[open + 2] : '\0';
      const bool signed_tag = sign == '-' || sign == '+';
      const size_t end = word_tag_end(open + (signed_tag ? 3 : 2), "endraw", true);
      if (end == std::string::npos) continue;
      add_data(open, signed_tag ? sign : '\0', false);
      go(end);
      return true;
    }
    throw ProblemAt{line, "'raw' without 'endraw'"};
  }

  // Reads tokens up to the tag's end. Inside brackets the end mark does not count.
  void tag(bool is_variable) {
    std::string open_brackets;
    while (true) {
      go(after_space(at_));
      if (at_ >= source_.size()) return;
      if (open_brackets.empty()) {
        const size_t end = tag_end(at_, is_variable ? "}}" : "%}", !is_variable);
        if (end != std::string::npos) {
          add(is_variable ? TokenType::variable_end : TokenType::block_end);
          return go(end);
        }
      }
      const char c = source_[at_];
      if (is_digit(c)) {
        number();
      } else if (begins_name(c)) {
        name();
      } else if (c == '\'' || c == '"') {
        text(c);
      } else {
        sign(open_brackets);
      }
    }
  }

  void name() {
    size_t end = at_;
    while (end < source_.size() && (begins_name(source_[end]) || is_digit(source_[end]))) ++end;
    if (end < source_.size() && static_cast<unsigned char>(source_[end]) >= 0x80)
      throw ProblemAt{line_, "'a name beyond ASCII' is not supported", true};
    add(TokenType::name, source_.substr(at_, end - at_));
    go(end);
  }

  void text(char quote) {
    size_t end = at_ + 1;
    for (; end < source_.size() && source_[end] != quote; ++end)
      if (source_[end] == '\\') ++end;
    if (end >= source_.size()) fail_here("a text that does not end");
    try {
      add(TokenType::text, unescape(std::string_view(source_).substr(at_ + 1, end - at_ - 1)));
    } catch (const Problem& problem) {
      throw ProblemAt{line_, problem.text, problem.kind == Problem::Kind::unsupported};
    }
    go(end + 1);
  }

  void number() {
    const bool behind_dot = at_ > 0 && source_[at_ - 1] == '.';
    const NumberLiteral literal = scan_number(std::string_view(source_).substr(at_), !behind_dot);
    if (!literal.problem.empty()) fail_here(literal.problem);
    add(TokenType::number, source_.substr(at_, literal.bytes));
    tokens_.back().number = literal.value;
    go(at_ + literal.bytes);
  }

  void sign(std::string& open_brackets) {
    constexpr std::array<std::string_view, 6> doubles = {"**", "//", "==", "!=", ">=", "<="};
    for (const std::string_view wide : doubles)
      if (looking_at(wide, at_)) {
        add(TokenType::sign, std::string(wide));
        return go(at_ + 2);
      }
    const char c = source_[at_];
    if (std::string_view("+-*/%~[](){}><=.:|,;").find(c) == std::string_view::npos)
      fail_here(fmt::format("the unexpected character '{}'", split_points(source_.substr(at_, 4)).front()));
    if (c == '(' || c == '[' || c == '{') open_brackets += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open_brackets.empty() || open_brackets.back() != c) fail_here(fmt::format("an unexpected '{}'", c));
      open_brackets.pop_back();
    }
    add(TokenType::sign, std::string(1, c));
    go(at_ + 1);
  }

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(normalized(source)).run(); }

}  // namespace headroom::jinja
