#include "doctor/config/python_tokens.h"

#include <fmt/format.h>

#include "base/error.h"
#include "formats/document_limits.h"

namespace headroom::doctor {
namespace {

using Kind = PythonToken::Kind;
constexpr size_t kMaxTokens = 1'000'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}
bool is_name(char c) { return is_name_start(c) || is_digit(c); }

class PythonReader {
 public:
  PythonReader(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  std::vector<PythonToken> read() {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = line_start_ = 3;
    while (at_ < text_.size()) step();
    end_line();
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void step() {
    const char c = peek();
    if (c == '\n') {
      if (depth_ == 0) end_line();
      ++at_;
      ++line_;
      line_start_ = at_;
    } else if (c == '#') {
      while (at_ < text_.size() && peek() != '\n') ++at_;
    } else if (c == '\\' && (peek(1) == '\n' || peek(1) == '\r')) {
      at_ += peek(1) == '\r' && peek(2) == '\n' ? 3 : 2;
      ++line_;
      line_start_ = std::string_view::npos;  // a joined line does not start a statement
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\0') {
      ++at_;
    } else if (const size_t prefix = string_prefix(); prefix != std::string_view::npos) {
      read_string(prefix);
    } else if (is_name_start(c)) {
      read_name();
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      read_number();
    } else {
      read_symbol();
    }
  }

  // Length of the prefix of a string that starts here; npos if none does.
  size_t string_prefix() const {
    size_t length = 0;
    while (length < 3 && peek(length) && std::string_view("rRbBuUfFtT").find(peek(length)) != std::string_view::npos)
      ++length;
    return peek(length) == '"' || peek(length) == '\'' ? length : std::string_view::npos;
  }

  PythonToken& add(Kind kind, size_t begin) {
    if (tokens_.size() >= kMaxTokens)
      throw Error(ErrorKind::format, fmt::format("{}:{}: more than {} tokens", source_, line_, kMaxTokens),
                  "check that the path names a script");
    PythonToken token;
    token.kind = kind;
    token.line = line_;
    token.begin = static_cast<int64_t>(begin);
    token.first = begin == line_start_ && (tokens_.empty() || tokens_.back().kind == Kind::line_end);
    tokens_.push_back(std::move(token));
    return tokens_.back();
  }

  void end_line() {
    if (!tokens_.empty() && tokens_.back().kind != Kind::line_end)
      add(Kind::line_end, at_).end = static_cast<int64_t>(at_);
  }

  void read_name() {
    PythonToken& token = add(Kind::name, at_);
    while (at_ < text_.size() && is_name(peek())) token.text += text_[at_++];
    token.end = static_cast<int64_t>(at_);
  }

  void read_number() {
    PythonToken& token = add(Kind::number, at_);
    const auto signed_exponent = [&](char c) {
      return (c == '+' || c == '-') && !token.text.empty() && (token.text.back() | 32) == 'e' &&
             !token.text.starts_with("0x");
    };
    while (at_ < text_.size() && (is_name(peek()) || peek() == '.' || signed_exponent(peek())))
      token.text += text_[at_++];
    token.end = static_cast<int64_t>(at_);
  }

  void read_symbol() {
    PythonToken& token = add(Kind::symbol, at_);
    for (std::string_view symbol : {"**=", "//=", "...", ">>=", "<<=", "**", "//", "==", "!=", "<=", ">=", "->",
                                    ":=",  "+=",  "-=",  "*=",  "/=",  "%=", "|=", "&=", "^=", "@=", "<<", ">>"})
      if (text_.substr(at_, symbol.size()) == symbol) {
        token.text = symbol;
        break;
      }
    if (token.text.empty()) token.text = std::string(1, peek());
    at_ += token.text.size();
    token.end = static_cast<int64_t>(at_);
    const char c = token.text[0];
    if (c == '(' || c == '[' || c == '{') ++depth_;
    if ((c == ')' || c == ']' || c == '}') && depth_ > 0) --depth_;
  }

  void read_string(size_t prefix) {
    const size_t begin = at_;
    const int64_t line = line_;
    bool raw = false, formatted = false;
    for (size_t i = 0; i < prefix; ++i) {
      raw = raw || (peek(i) | 32) == 'r';
      formatted = formatted || (peek(i) | 32) == 'f' || (peek(i) | 32) == 't';
    }
    at_ += prefix;
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    at_ += triple ? 3 : 1;
    std::string value;
    while (true) {
      if (at_ >= text_.size() || (!triple && peek() == '\n'))
        throw Error(ErrorKind::format, fmt::format("{}:{}: a string without its end", source_, line),
                    "close the quote");
      if (peek() == quote && (!triple || (peek(1) == quote && peek(2) == quote))) break;
      if (peek() == '\\' && at_ + 1 < text_.size()) {
        append_escape(value, raw);
      } else {
        line_ += peek() == '\n';
        value += text_[at_++];
      }
    }
    at_ += triple ? 3 : 1;
    const bool interpolated = formatted && value.find('{') != std::string::npos;
    add_string(begin, line, std::move(value), interpolated);
  }

  // At a backslash. Escapes that options do not contain (\x, \u, \N) stay as written.
  void append_escape(std::string& value, bool raw) {
    const char c = peek(1);
    line_ += c == '\n';
    at_ += 2;
    if (!raw && c == '\n') return;
    if (!raw && (c == 'n' || c == 't')) {
      value += c == 'n' ? '\n' : '\t';
      return;
    }
    if (raw || (c != '\\' && c != '\'' && c != '"')) value += '\\';
    value += c;
  }

  void add_string(size_t begin, int64_t line, std::string value, bool interpolated) {
    if (!tokens_.empty() && tokens_.back().kind == Kind::string) {
      PythonToken& before = tokens_.back();
      before.text += value;
      before.interpolated = before.interpolated || interpolated;
      before.end = static_cast<int64_t>(at_);
      return;
    }
    PythonToken& token = add(Kind::string, begin);
    token.text = std::move(value);
    token.interpolated = interpolated;
    token.line = line;
    token.end = static_cast<int64_t>(at_);
  }

  std::string_view text_;
  const std::string& source_;
  std::vector<PythonToken> tokens_;
  size_t at_ = 0, line_start_ = 0;
  int64_t line_ = 1;
  int depth_ = 0;
};

}  // namespace

std::vector<PythonToken> tokenize_python(std::string_view text, const std::string& source) {
  refuse_unreadable_document(text, source);
  return PythonReader(text, source).read();
}

}  // namespace headroom::doctor
