#include "grammar/automaton_builder.h"

#include <algorithm>

#include "base/error.h"

namespace headroom {

AutomatonBuilder::AutomatonBuilder(const GrammarLimits& limits) : limits_(limits) {
  automaton_.states.push_back({GrammarState::Kind::end});
}

void AutomatonBuilder::refuse(std::string_view problem, std::string remedy) const {
  throw Error(ErrorKind::usage, fmt::format("{}: {}", place_, problem),
              remedy.empty() ? "docs/grammars.md has what is supported" : std::move(remedy));
}

void AutomatonBuilder::step(int64_t count) {
  steps_ += count;
  if (steps_ > limits_.compile_steps)
    refuse(fmt::format("the grammar takes more than {} steps to compile", limits_.compile_steps),
           "make it smaller: lower bounds of repetitions, fewer cases");
}

GrammarRuleId AutomatonBuilder::declare(std::string place) {
  if (static_cast<int64_t>(automaton_.rule_starts.size()) == limits_.rules)
    refuse(fmt::format("the grammar has more than {} rules", limits_.rules), "make it smaller, or nest it less");
  automaton_.rule_starts.push_back(end());
  rule_places_.push_back(std::move(place));
  return static_cast<GrammarRuleId>(automaton_.rule_starts.size() - 1);
}

GrammarStateId AutomatonBuilder::add(GrammarState state) {
  step();
  if (static_cast<int64_t>(automaton_.states.size()) == limits_.states)
    refuse(fmt::format("the grammar has more than {} states", limits_.states),
           "make it smaller: lower bounds of repetitions, fewer cases");
  automaton_.states.push_back(state);
  return static_cast<GrammarStateId>(automaton_.states.size() - 1);
}

GrammarStateId AutomatonBuilder::bytes(const ByteSet& set, GrammarStateId next) {
  const auto [found, added] = set_numbers_.try_emplace(set, static_cast<uint32_t>(automaton_.sets.size()));
  if (added) automaton_.sets.push_back(set);
  return add({GrammarState::Kind::bytes, found->second, next});
}

GrammarStateId AutomatonBuilder::literal(std::string_view text, GrammarStateId next) {
  for (size_t at = text.size(); at > 0; --at) {
    ByteSet one;
    one.add(static_cast<uint8_t>(text[at - 1]));
    next = bytes(one, next);
  }
  return next;
}

GrammarStateId AutomatonBuilder::either(GrammarStateId first, GrammarStateId second) {
  return first == second ? first : add({GrammarState::Kind::branch, first, second});
}

GrammarStateId AutomatonBuilder::any_of(const std::vector<GrammarStateId>& alternatives) {
  if (alternatives.empty()) return bytes(ByteSet(), end());
  GrammarStateId all = alternatives.back();
  for (size_t i = alternatives.size() - 1; i > 0; --i) all = either(alternatives[i - 1], all);
  return all;
}

GrammarStateId AutomatonBuilder::call(GrammarRuleId rule, GrammarStateId next) {
  return add({GrammarState::Kind::call, rule, next});
}

GrammarStateId AutomatonBuilder::open_loop() { return add({GrammarState::Kind::branch, end(), end()}); }

void AutomatonBuilder::close_loop(GrammarStateId loop, GrammarStateId body, GrammarStateId next) {
  automaton_.states[loop].a = body;
  automaton_.states[loop].b = next;
}

PushdownAutomaton AutomatonBuilder::finish() {
  check_ends();
  check_left_recursion();
  classify_bytes();
  automaton_.states.shrink_to_fit();
  automaton_.sets.shrink_to_fit();
  return std::move(automaton_);
}

namespace {

// For every state whether it has a property that depends on other states: repeats until nothing changes. `holds` is
// called with the states and rule starts that have it so far.
class StateProperty {
 public:
  StateProperty(const PushdownAutomaton& automaton, bool through_bytes)
      : automaton_(automaton), through_bytes_(through_bytes), has_(automaton.states.size()) {
    bool changed = true;
    for (bool forward = true; changed; forward = !forward) {
      changed = false;
      for (size_t i = 0; i < has_.size(); ++i) {
        const size_t state = forward ? i : has_.size() - 1 - i;
        if (has_[state] || !follows(automaton.states[state])) continue;
        has_[state] = true;
        changed = true;
      }
    }
  }
  bool of(GrammarStateId state) const { return has_[state]; }
  bool of_rule(GrammarRuleId rule) const { return has_[automaton_.rule_starts[rule]]; }

 private:
  bool follows(const GrammarState& state) const {
    switch (state.kind) {
      case GrammarState::Kind::bytes:
        return through_bytes_ && !automaton_.sets[state.a].empty() && has_[state.b];
      case GrammarState::Kind::branch:
        return has_[state.a] || has_[state.b];
      case GrammarState::Kind::call:
        return of_rule(state.a) && has_[state.b];
      case GrammarState::Kind::end:
        break;
    }
    return true;
  }

  const PushdownAutomaton& automaton_;
  bool through_bytes_;
  std::vector<bool> has_;
};

// The rules that a rule may call before it has read a byte.
class LeftCalls {
 public:
  explicit LeftCalls(const PushdownAutomaton& automaton)
      : automaton_(automaton), reads_nothing_(automaton, false), seen_(automaton.states.size(), -1) {}

  std::vector<GrammarRuleId> of(GrammarRuleId rule) {
    std::vector<GrammarRuleId> found;
    std::vector<GrammarStateId> waiting{automaton_.rule_starts[rule]};
    const auto visit = [&](GrammarStateId state) {
      if (seen_[state] != static_cast<int64_t>(rule)) waiting.push_back(state);
      seen_[state] = rule;
    };
    while (!waiting.empty()) {
      const GrammarState state = automaton_.states[waiting.back()];
      waiting.pop_back();
      if (state.kind == GrammarState::Kind::branch) {
        visit(state.a);
        visit(state.b);
      } else if (state.kind == GrammarState::Kind::call) {
        found.push_back(state.a);
        if (reads_nothing_.of_rule(state.a)) visit(state.b);
      }
    }
    return found;
  }

 private:
  const PushdownAutomaton& automaton_;
  StateProperty reads_nothing_;
  std::vector<int64_t> seen_;
};

}  // namespace

// Removes branches to states from which no text ends, so that every text can be completed.
void AutomatonBuilder::check_ends() {
  const StateProperty ends(automaton_, true);
  if (!ends.of_rule(0)) {
    for (size_t rule = rule_places_.size(); rule > 0; --rule)
      if (!ends.of_rule(static_cast<GrammarRuleId>(rule - 1))) {
        at(rule_places_[rule - 1]);
        break;
      }
    refuse("no text matches, or none that ends", "a rule that needs itself must also have another way to end");
  }
  for (GrammarState& state : automaton_.states)
    if (state.kind == GrammarState::Kind::branch) {
      if (!ends.of(state.a)) state.a = state.b;
      if (!ends.of(state.b)) state.b = state.a;
    }
}

void AutomatonBuilder::check_left_recursion() {
  struct Visit {
    GrammarRuleId rule;
    std::vector<GrammarRuleId> calls;
    size_t next = 0;
  };
  enum : char { unseen, open, done };
  LeftCalls left(automaton_);
  std::vector<char> marks(automaton_.rule_starts.size(), unseen);
  for (GrammarRuleId root = 0; root < marks.size(); ++root) {
    if (marks[root] != unseen) continue;
    std::vector<Visit> path{{root, left.of(root)}};
    marks[root] = open;
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.next == visit.calls.size()) {
        marks[visit.rule] = done;
        path.pop_back();
        continue;
      }
      const GrammarRuleId called = visit.calls[visit.next++];
      if (marks[called] == open) {
        at(rule_places_[called]);
        refuse("it calls itself before it has read anything (left recursion)",
               "put what it reads first in front of the call: list ::= item (\",\" item)*");
      }
      if (marks[called] == done) continue;
      marks[called] = open;
      path.push_back({called, left.of(called)});
    }
  }
}

void AutomatonBuilder::classify_bytes() {
  std::array<int, 256> classes{};
  int count = 1;
  for (const ByteSet& set : automaton_.sets) {
    std::map<std::pair<int, bool>, int> split;
    for (unsigned byte = 0; byte < 256; ++byte)
      classes[byte] =
          split.try_emplace({classes[byte], set.has(static_cast<uint8_t>(byte))}, static_cast<int>(split.size()))
              .first->second;
    count = static_cast<int>(split.size());
  }
  automaton_.class_bytes.assign(static_cast<size_t>(count), 0);
  for (unsigned byte = 0; byte < 256; ++byte) {
    automaton_.byte_class[byte] = static_cast<uint8_t>(classes[byte]);
    automaton_.class_bytes[static_cast<size_t>(classes[byte])] = static_cast<uint8_t>(byte);
  }
}

}  // namespace headroom
