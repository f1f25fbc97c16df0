// The places in a grammar that a text may have come to, each with the rules that it is in: made as they are needed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "grammar/limits.h"
#include "grammar/pushdown_automaton.h"

namespace headroom {

using ConfigurationId = uint32_t;

// A configuration is a set of threads: a state that reads a byte, and a stack of the states that follow where rules
// end. Equal configurations have one id, and their steps are looked up once they are known. Everything lies in tables
// of a fixed size; when they are full forget() keeps one configuration and drops the others.
class Configurations {
 public:
  static constexpr ConfigurationId kDead = UINT32_MAX;

  // Thrown where a table is full.
  struct Full {};

  // `automaton` outlives this.
  Configurations(const PushdownAutomaton& automaton, const GrammarLimits& limits);

  // Before the first byte. Throws Full, as all that makes configurations.
  ConfigurationId start();
  // Behind one more byte; kDead where no text goes on so. Throws Error(run) where a step has more threads than the
  // limits allow.
  ConfigurationId step(ConfigurationId from, uint8_t byte) {
    const uint32_t known = steps_[from * classes_ + automaton_.byte_class[byte]];
    return known != kUnknown ? known : find_step(from, automaton_.byte_class[byte]);
  }
  // Whether the text may end here, and whether it may go on.
  bool ends(ConfigurationId id) const { return configurations_[id].ends; }
  bool goes_on(ConfigurationId id) const { return configurations_[id].count > 0; }

  // What all threads of a configuration have in common below: the configuration without it, which ends() where the text
  // leaves its rules, and the one in which the text then is.
  struct Split {
    ConfigurationId above;
    ConfigurationId behind;  // kDead: nothing in common, `above` is the configuration itself
  };
  Split split(ConfigurationId id);

  // Keeps one configuration, whose new id is returned.
  ConfigurationId forget(ConfigurationId kept);

  // Threads that have been followed since the program began: the work done.
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
    GrammarStateId state;  // where the text goes on
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
  // The set that is being made.
  std::vector<Thread> set_, waiting_;
  std::vector<uint64_t> seen_;        // a hash table of threads
  std::vector<uint32_t> seen_marks_;  // the set that each was seen in
  uint32_t mark_ = 0;
  size_t seen_count_ = 0;
  bool set_ends_ = false;
  int64_t work_ = 0;
};

}  // namespace headroom
