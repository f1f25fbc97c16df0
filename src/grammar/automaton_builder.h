// Builds a pushdown automaton from its ends to its beginnings, within limits.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/code_point_set.h"
#include "grammar/limits.h"
#include "grammar/pushdown_automaton.h"

namespace headroom {

// Every function with a parameter `next` returns the state that reads its part of the text and continues there.
class AutomatonBuilder {
 public:
  explicit AutomatonBuilder(const GrammarLimits& limits);

  // The position that errors name from now on: "--regex: character 7", "schema: /properties/name".
  void at(std::string place) { place_ = std::move(place); }
  const std::string& place() const { return place_; }
  const GrammarLimits& limits() const { return limits_; }

  // Declares a rule; the first one is the whole text. `place` names it in errors.
  GrammarRuleId declare(std::string place);
  void rename(GrammarRuleId rule, std::string place) { rule_places_[rule] = std::move(place); }
  void define(GrammarRuleId rule, GrammarStateId start) { automaton_.rule_starts[rule] = start; }

  static constexpr GrammarStateId end() { return PushdownAutomaton::kEnd; }
  GrammarStateId bytes(const ByteSet& set, GrammarStateId next);
  GrammarStateId literal(std::string_view text, GrammarStateId next);
  GrammarStateId code_points(const CodePointSet& set, GrammarStateId next);
  GrammarStateId either(GrammarStateId first, GrammarStateId second);
  // The first of no alternatives is a state without successors.
  GrammarStateId any_of(const std::vector<GrammarStateId>& alternatives);
  GrammarStateId call(GrammarRuleId rule, GrammarStateId next);
  // A state that close_loop() turns into a branch: into the loop's body, which continues at that state, or out of it.
  GrammarStateId open_loop();
  void close_loop(GrammarStateId loop, GrammarStateId body, GrammarStateId next);
  // One of several texts, which are sorted and distinct; common prefixes are shared.
  GrammarStateId one_of(const std::vector<std::string>& texts, GrammarStateId next);

  // Counts steps of compiling. Throws Error(usage) beyond the limit.
  void step(int64_t count = 1);
  // Throws Error(usage) naming the position.
  [[noreturn]] void refuse(std::string_view problem, std::string remedy = {}) const;

  // Throws Error(usage) naming a rule that calls itself before it has read anything, or that never ends.
  PushdownAutomaton finish();

 private:
  GrammarStateId add(GrammarState state);
  GrammarStateId texts_from(const std::vector<std::string>& texts, size_t begin, size_t end, size_t at,
                            GrammarStateId next);
  void check_ends();
  void check_left_recursion();
  void classify_bytes();

  GrammarLimits limits_;
  PushdownAutomaton automaton_;
  std::map<ByteSet, uint32_t> set_numbers_;
  std::vector<std::string> rule_places_;
  std::string place_;
  int64_t steps_ = 0;
};

}  // namespace headroom
