// Facts about a pattern's matches, found without running it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tokenizer/pattern_node.h"

namespace headroom {

// Sets are given by their index in the pattern's list of sets.
struct PatternFacts {
  // Sets that may match neighbouring characters of one match.
  struct Neighbours {
    uint16_t left;
    uint16_t right;
  };
  struct Assertion {
    PatternAssertion kind;
    bool far;                      // may look at more than one character
    uint16_t set;                  // the set of the character that it looks at
    bool begins;                   // may be evaluated where a match begins
    std::vector<uint16_t> before;  // sets that may match right before it
  };
  std::vector<Neighbours> neighbours;
  std::vector<Assertion> assertions;
  std::vector<uint16_t> lone;  // sets of which one character is a match whatever follows
};

// Like the construction of Glushkov's automaton: which positions can be first, last, and next to each other.
class PatternAnalysis {
 public:
  explicit PatternAnalysis(const PatternNode& root);

  bool matches_empty() const { return matches_empty_; }
  // Whether something that may be empty is repeated.
  bool repeats_empty() const { return repeats_empty_; }
  PatternFacts take_facts() && { return std::move(facts_); }

 private:
  // Positions are sets or, from kAssertion on, assertions.
  struct Ends {
    bool nullable = true;
    std::vector<uint32_t> first;
    std::vector<uint32_t> last;
  };
  // Sets of which one character suffices, and whether the node may match nothing without looking at what follows.
  struct Lone {
    bool nullable = true;
    bool gives_back = true;  // not possessive
    std::vector<uint16_t> sets;
  };
  Ends visit(const PatternNode& node);
  Ends visit_sequence(const PatternNode& node);
  Ends visit_assertion(const PatternNode& node);
  void follow(const std::vector<uint32_t>& left, const std::vector<uint32_t>& right);
  static Lone lone(const PatternNode& node);
  static Lone lone_sequence(const PatternNode& node);

  PatternFacts facts_;
  bool matches_empty_ = false;
  bool repeats_empty_ = false;
};

}  // namespace headroom
