// The common part of the parsers of regular expressions and EBNF: the text with a position, repetitions, escapes,
// classes.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/expression.h"

namespace headroom {

// Reads UTF-8 text character by character. Errors name the position that was last passed to the builder.
class ExpressionReader {
 public:
  // `text` is UTF-8, and outlives this.
  ExpressionReader(std::string_view text, AutomatonBuilder& builder) : text_(text), builder_(builder) {}

  bool ended() const { return at_ == text_.size(); }
  size_t offset() const { return at_; }
  char32_t peek() const;  // 0 at the end
  char32_t take();
  bool take_if(char32_t code);
  bool starts(std::string_view literal) const { return text_.substr(at_).starts_with(literal); }
  bool at_last() const { return at_ + 1 == text_.size(); }  // one byte is left
  void skip(size_t bytes) { at_ += bytes; }
  AutomatonBuilder& builder() { return builder_; }
  [[noreturn]] void refuse(std::string_view problem) const { builder_.refuse(problem); }

  // After a backslash and its letter x, u or U: the number of so many hexadecimal digits as a code point.
  char32_t hex_character(int digits);
  // "{3}", "{3,}", "{3,5}", '*', '+', '?' after an expression; the expression itself if there is none.
  ExpressionPointer repeated(ExpressionPointer expression);
  // Whether a repetition of either form begins here.
  bool at_repetition() const;

 private:
  int64_t number();

  std::string_view text_;
  size_t at_ = 0;
  AutomatonBuilder& builder_;
};

// The largest count of a repetition.
inline constexpr int64_t kMostRepetitions = 10000;

// Counts nested groups while it lives. Throws Error(usage) beyond the limit.
class NestedGroup {
 public:
  NestedGroup(int64_t& depth, const AutomatonBuilder& builder);
  ~NestedGroup() { --depth_; }
  NestedGroup(const NestedGroup&) = delete;
  NestedGroup& operator=(const NestedGroup&) = delete;

 private:
  int64_t& depth_;
};

}  // namespace headroom
