// The syntax tree of a pattern, from the parser to the compiler.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/char_set.h"

namespace headroom {

enum class PatternAssertion : uint8_t { ahead, behind, line_begin, line_end, text_begin, text_end };

struct PatternNode {
  enum class Kind : uint8_t { set, sequence, alternation, repeat, atomic, assertion };
  static constexpr uint32_t kUnbounded = UINT32_MAX;

  Kind kind = Kind::sequence;  // without children: the empty text
  std::vector<std::unique_ptr<PatternNode>> children;
  uint16_t set = 0;    // set, and assertion behind: index in the list of sets
  uint32_t least = 0;  // repeat
  uint32_t most = 0;
  bool lazy = false;
  bool possessive = false;
  PatternAssertion assertion = PatternAssertion::ahead;
  bool negative = false;
};

// Parses a pattern; its sets are appended to `sets`. Throws Error(format) naming `place`.
std::unique_ptr<PatternNode> parse_pattern(std::string_view text, const std::string& place, std::vector<CharSet>& sets);

}  // namespace headroom
