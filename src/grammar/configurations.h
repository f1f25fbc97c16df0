// The possible states of a text in a grammar, with the rules that are open in each; created on demand.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "grammar/limits.h"
#include "grammar/pushdown_automaton.h"

namespace headroom {

using ConfigurationId = uint32_t;

// A configuration is a set of threads: a state that reads a byte, and a stack of the states to return to when rules
// end. Equal configurations share an id, and their steps are looked up once they are known. Everything is stored in
// tables of fixed size; when they are full forget() keeps one configuration and drops the others.
class Configurations {
 public:
  static constexpr ConfigurationId kDead = UINT32_MAX;

  // Thrown if a table is full.
  struct Full {};

  // `automaton` outlives this.
  Configurations(const PushdownAutomaton& automaton, const GrammarLimits& limits);

  // The configuration before the first byte. Throws Full, like every function that makes configurations.
  ConfigurationId start();
  // The configuration after one more byte; kDead if no text continues so. Throws Error(run) if a step has more threads
  // than the limits allow.
  ConfigurationId step(ConfigurationId from, uint8_t byte) {
    const uint32_t known = steps_[from * classes_ + automaton_.byte_class[byte]];
    return known != kUnknown ? known : find_step(from, automaton_.byte_class[byte]);
  }
  // Whether the text may end here, and whether it may continue.
  bool ends(ConfigurationId id) const { return configurations_[id].ends; }
  bool goes_on(ConfigurationId id) const { return configurations_[id].count > 0; }

  // A configuration split at the part of the stacks that all threads share: the configuration without it, which ends()
  // when the text leaves its rules, and the one in which the text is after that.
  struct Split {
    ConfigurationId above;
    ConfigurationId behind;  // kDead: nothing is shared, `above` is the configuration itself
  };
  Split split(ConfigurationId id);

  // Keeps one configuration and returns its new id.
  ConfigurationId forget(ConfigurationId kept);

  // Threads that have been followed since construction: the work done.
  int64_t work() const { return work_; }
  // The bytes of all tables.
  int64_t memory_bytes() const;

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX - 1;
  struct Thread {
    GrammarStateId state;
    uint32_t stack;
    friend auto operator<=>(const Thread&, const Thread&) = default;
  };
  struct StackNode {
    uint32_t parent;
    GrammarStateId state;  // where the text continues
    uint32_t depth;
  };
  struct Configuration {
    uint32_t first, count;  // of threads_
    bool ends;
  };

  ConfigurationId find_step(ConfigurationId from, uint8_t byte_class);
  void begin_set();
  void follow(GrammarStateId state, uint32_t stack);
  void visit(GrammarStateId state, uint32_t stack);
  ConfigurationId intern_set();
  uint32_t push(uint32_t parent, GrammarStateId state);
  uint32_t common_stack(const Configuration& configuration) const;
  uint32_t rebased(uint32_t stack, uint32_t base);
  bool same(const Configuration& configuration) const;

  const PushdownAutomaton& automaton_;
  GrammarLimits limits_;
  uint32_t classes_;
  size_t most_configurations_, most_threads_, most_stacks_;
  std::vector<Configuration> configurations_;
  std::vector<Thread> threads_;
  std::vector<StackNode> stacks_;                            // node 0 is the bottom
  std::vector<uint32_t> steps_;                              // a row of each configuration
  std::vector<uint32_t> configuration_slots_, stack_slots_;  // hash tables of ids + 1
  // The set under construction.
  std::vector<Thread> set_, waiting_;
  std::vector<uint64_t> seen_;        // a hash table of threads
  std::vector<uint32_t> seen_marks_;  // the set in which each was seen
  uint32_t mark_ = 0;
  size_t seen_count_ = 0;
  bool set_ends_ = false;
  int64_t work_ = 0;
};

}  // namespace headroom
