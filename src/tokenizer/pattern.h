// Regular expressions of tokenizers: the part of Oniguruma's syntax (Ruby flavour) that they use, with Unicode 16.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/char_set.h"
#include "tokenizer/known_patterns.h"
#include "tokenizer/pattern_analysis.h"

namespace headroom {

// A match is the bytes [begin, end).
struct PatternMatch {
  size_t begin;
  size_t end;
};

// A compiled pattern. Immutable and thread-safe.
class Pattern {
 public:
  // Supports literals, classes, \p{..} of general categories, \s \w \d, groups, (?i:..), alternation, greedy, lazy and
  // possessive repetition, lookahead, one-character lookbehind, ^ $ \A \z. Throws Error(format) naming `place` and what
  // is not supported; also for a pattern that matches the empty text.
  static Pattern compile(std::string_view text, const std::string& place);

  // A pattern that matches `text` literally. Throws Error(format) naming `place` if the text is empty or too long.
  static Pattern literal(std::string_view text, const std::string& place);

  // The leftmost match at or after byte `from` of valid UTF-8. The patterns of GPT-2, Llama 3 and Qwen2 have scanners
  // of their own. Throws Error(run) if matching needs an unreasonable number of steps.
  std::optional<PatternMatch> find(std::string_view text, size_t from) const;

  // The same without those scanners.
  std::optional<PatternMatch> find_generally(std::string_view text, size_t from) const;

  // Whether, wherever `left` and `right` are neighbours, no match contains both, and the matches on either side are
  // those of the two parts alone.
  bool keeps_apart(char32_t left, char32_t right) const;

  // Whether a search that reaches `code` always finds a match that begins there.
  bool always_matches(char32_t code) const;

  // Whether a set of the pattern contains `code`: if not, no match does.
  bool mentions(char32_t code) const;

  // Heap bytes held, roughly.
  int64_t memory_bytes() const;

 private:
  enum class Code : uint8_t { set, loop, split, jump, look, atomic, match };
  // The fields are explained where the matcher runs the instruction.
  struct Instruction {
    Code code;
    bool flag = false;
    uint16_t set = 0;
    uint32_t first = 0;
    uint32_t second = 0;
  };
  class Compiler;
  class Matcher;

  std::string text_;
  KnownPattern known_ = KnownPattern::none;
  std::vector<CharSet> sets_;
  std::vector<Instruction> program_;
  PatternFacts facts_;
};

}  // namespace headroom
