// A grammar over bytes as a pushdown automaton: rules whose states read a byte, branch, call a rule or return.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "grammar/byte_set.h"

namespace headroom {

using GrammarStateId = uint32_t;
using GrammarRuleId = uint32_t;

struct GrammarState {
  enum class Kind : uint8_t {
    bytes,   // a byte of set `a`, then state `b`
    branch,  // state `a` or state `b`
    call,    // rule `a`, then state `b`
    end,     // of the rule
  };
  Kind kind;
  uint32_t a = 0;
  uint32_t b = 0;
};

struct PushdownAutomaton {
  static constexpr GrammarStateId kEnd = 0;  // of every rule: a call followed by kEnd needs no stack

  std::vector<GrammarState> states;
  std::vector<ByteSet> sets;
  std::vector<GrammarStateId> rule_starts;  // the first rule is the whole text
  std::array<uint8_t, 256> byte_class{};    // bytes of a class are in the same sets
  std::vector<uint8_t> class_bytes;         // one byte of each class

  int64_t memory_bytes() const {
    return static_cast<int64_t>(states.capacity() * sizeof(GrammarState) + sets.capacity() * sizeof(ByteSet) +
                                rule_starts.capacity() * sizeof(GrammarStateId) + class_bytes.capacity());
  }
};

}  // namespace headroom
