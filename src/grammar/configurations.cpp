#include "grammar/configurations.h"

#include <algorithm>
#include <bit>

#include "base/counter_random.h"
#include "base/error.h"

namespace headroom {
namespace {

constexpr size_t kThreadsEach = 8;  // of a configuration, on average
constexpr uint32_t kBottom = 0;

size_t slot_of(uint64_t hash, size_t slots) { return static_cast<size_t>(hash) & (slots - 1); }

uint64_t mixed(uint64_t hash, uint64_t value) { return mix64(hash ^ value); }

}  // namespace

Configurations::Configurations(const PushdownAutomaton& automaton, const GrammarLimits& limits)
    : automaton_(automaton), limits_(limits), classes_(static_cast<uint32_t>(automaton.class_bytes.size())) {
  const size_t each = classes_ * sizeof(uint32_t) + sizeof(Configuration) + 4 * sizeof(uint32_t) +
                      kThreadsEach * (sizeof(Thread) + sizeof(StackNode) / 4 + 2 * sizeof(uint32_t));
  most_configurations_ = std::clamp<size_t>(static_cast<size_t>(limits.table_bytes) / each, 16,
                                            static_cast<size_t>(limits.configurations));
  most_threads_ = most_configurations_ * kThreadsEach + static_cast<size_t>(limits.threads);
  most_stacks_ = most_configurations_ * kThreadsEach / 4 + 4 * static_cast<size_t>(limits.threads);
  configurations_.reserve(most_configurations_);
  threads_.reserve(most_threads_);
  stacks_.reserve(most_stacks_);
  steps_.reserve(most_configurations_ * classes_);
  configuration_slots_.assign(std::bit_ceil(2 * most_configurations_), 0);
  stack_slots_.assign(std::bit_ceil(2 * most_stacks_), 0);
  const auto threads = static_cast<size_t>(limits.threads);
  set_.reserve(threads);
  waiting_.reserve(4 * threads);
  seen_.assign(std::bit_ceil(8 * threads), 0);
  seen_marks_.assign(seen_.size(), 0);
  stacks_.push_back({kBottom, 0, 0});
}

int64_t Configurations::memory_bytes() const {
  return static_cast<int64_t>(
      configurations_.capacity() * sizeof(Configuration) +
      (threads_.capacity() + set_.capacity() + waiting_.capacity()) * sizeof(Thread) +
      stacks_.capacity() * (2 * sizeof(StackNode) + 2 * sizeof(uint32_t)) +  // forget()
      seen_.capacity() * sizeof(uint64_t) +
      (steps_.capacity() + configuration_slots_.capacity() + stack_slots_.capacity() + seen_marks_.capacity()) *
          sizeof(uint32_t));
}

void Configurations::begin_set() {
  set_.clear();
  waiting_.clear();
  set_ends_ = false;
  seen_count_ = 0;
  if (++mark_ == 0) {  // marks of earlier sets would be mistaken for this one's
    seen_marks_.assign(seen_marks_.size(), 0);
    mark_ = 1;
  }
}

// Puts a thread on the worklist, once.
void Configurations::visit(GrammarStateId state, uint32_t stack) {
  const uint64_t key = uint64_t{state} << 32 | stack;
  size_t slot = slot_of(mix64(key), seen_.size());
  for (; seen_marks_[slot] == mark_; slot = slot_of(slot + 1, seen_.size()))
    if (seen_[slot] == key) return;
  if (++seen_count_ > static_cast<size_t>(4 * limits_.threads) || waiting_.size() == waiting_.capacity())
    throw Error(ErrorKind::run,
                fmt::format("the grammar is too ambiguous: a text may be at more than {} places of it at once",
                            limits_.threads),
                "write it so that the next characters decide which alternative is meant");
  seen_[slot] = key;
  seen_marks_[slot] = mark_;
  waiting_.push_back({state, stack});
}

// Adds a thread to the set, with all threads that it reaches without reading a byte.
void Configurations::follow(GrammarStateId state, uint32_t stack) {
  visit(state, stack);
  while (!waiting_.empty()) {
    const Thread thread = waiting_.back();
    waiting_.pop_back();
    ++work_;
    const GrammarState& at = automaton_.states[thread.state];
    switch (at.kind) {
      case GrammarState::Kind::bytes:
        if (set_.size() == static_cast<size_t>(limits_.threads))
          throw Error(ErrorKind::run,
                      fmt::format("the grammar is too ambiguous: a text may be at more than {} places of it at once",
                                  limits_.threads),
                      "write it so that the next characters decide which alternative is meant");
        set_.push_back(thread);
        break;
      case GrammarState::Kind::branch:
        visit(at.a, thread.stack);
        visit(at.b, thread.stack);
        break;
      case GrammarState::Kind::call:
        if (at.b == PushdownAutomaton::kEnd)
          visit(automaton_.rule_starts[at.a], thread.stack);
        else if (stacks_[thread.stack].depth < static_cast<uint32_t>(limits_.stack_depth))
          visit(automaton_.rule_starts[at.a], push(thread.stack, at.b));
        break;
      case GrammarState::Kind::end:
        if (thread.stack == kBottom)
          set_ends_ = true;
        else
          visit(stacks_[thread.stack].state, stacks_[thread.stack].parent);
        break;
    }
  }
}

uint32_t Configurations::push(uint32_t parent, GrammarStateId state) {
  size_t slot = slot_of(mix64(uint64_t{state} << 32 | parent), stack_slots_.size());
  for (; stack_slots_[slot] != 0; slot = slot_of(slot + 1, stack_slots_.size())) {
    const StackNode& node = stacks_[stack_slots_[slot] - 1];
    if (node.parent == parent && node.state == state) return stack_slots_[slot] - 1;
  }
  if (stacks_.size() == most_stacks_) throw Full();
  stacks_.push_back({parent, state, stacks_[parent].depth + 1});
  stack_slots_[slot] = static_cast<uint32_t>(stacks_.size());
  return static_cast<uint32_t>(stacks_.size() - 1);
}

bool Configurations::same(const Configuration& configuration) const {
  return configuration.ends == set_ends_ && configuration.count == set_.size() &&
         std::equal(set_.begin(), set_.end(), threads_.begin() + configuration.first);
}

// The id of the completed set.
ConfigurationId Configurations::intern_set() {
  if (set_.empty() && !set_ends_) return kDead;
  std::sort(set_.begin(), set_.end());
  uint64_t hash = set_ends_ ? 1 : 0;
  for (const Thread& thread : set_) hash = mixed(hash, uint64_t{thread.state} << 32 | thread.stack);
  size_t slot = slot_of(hash, configuration_slots_.size());
  for (; configuration_slots_[slot] != 0; slot = slot_of(slot + 1, configuration_slots_.size()))
    if (same(configurations_[configuration_slots_[slot] - 1])) return configuration_slots_[slot] - 1;
  if (configurations_.size() == most_configurations_ || threads_.size() + set_.size() > most_threads_) throw Full();
  configurations_.push_back({static_cast<uint32_t>(threads_.size()), static_cast<uint32_t>(set_.size()), set_ends_});
  threads_.insert(threads_.end(), set_.begin(), set_.end());
  steps_.resize(steps_.size() + classes_, kUnknown);
  configuration_slots_[slot] = static_cast<uint32_t>(configurations_.size());
  return static_cast<ConfigurationId>(configurations_.size() - 1);
}

ConfigurationId Configurations::start() {
  begin_set();
  follow(automaton_.rule_starts[0], kBottom);
  return intern_set();
}

ConfigurationId Configurations::find_step(ConfigurationId from, uint8_t byte_class) {
  begin_set();
  const Configuration configuration = configurations_[from];
  const uint8_t byte = automaton_.class_bytes[byte_class];
  for (uint32_t i = 0; i < configuration.count; ++i) {
    const Thread thread = threads_[configuration.first + i];
    const GrammarState& at = automaton_.states[thread.state];
    ++work_;
    if (automaton_.sets[at.a].has(byte)) follow(at.b, thread.stack);
  }
  const ConfigurationId to = intern_set();
  steps_[from * classes_ + byte_class] = to;
  return to;
}

// The deepest stack that all threads share.
uint32_t Configurations::common_stack(const Configuration& configuration) const {
  if (configuration.ends || configuration.count == 0) return kBottom;
  uint32_t common = threads_[configuration.first].stack;
  for (uint32_t i = 1; i < configuration.count; ++i) {
    uint32_t other = threads_[configuration.first + i].stack;
    while (other != common) {
      if (stacks_[other].depth >= stacks_[common].depth)
        other = stacks_[other].parent;
      else
        common = stacks_[common].parent;
    }
  }
  return common;
}

// The part of a stack above `base`, moved to the bottom.
uint32_t Configurations::rebased(uint32_t stack, uint32_t base) {
  std::vector<GrammarStateId> states;
  for (; stack != base; stack = stacks_[stack].parent) states.push_back(stacks_[stack].state);
  uint32_t out = kBottom;
  for (size_t i = states.size(); i > 0; --i) out = push(out, states[i - 1]);
  return out;
}

Configurations::Split Configurations::split(ConfigurationId id) {
  const Configuration configuration = configurations_[id];
  const uint32_t common = common_stack(configuration);
  if (common == kBottom) return {id, kDead};
  begin_set();
  follow(stacks_[common].state, stacks_[common].parent);
  const ConfigurationId behind = intern_set();
  begin_set();
  for (uint32_t i = 0; i < configuration.count; ++i) {
    const Thread thread = threads_[configuration.first + i];
    set_.push_back({thread.state, rebased(thread.stack, common)});
  }
  return {intern_set(), behind};
}

ConfigurationId Configurations::forget(ConfigurationId kept) {
  const Configuration configuration = configurations_[kept];
  begin_set();
  set_.assign(threads_.begin() + configuration.first, threads_.begin() + configuration.first + configuration.count);
  set_ends_ = configuration.ends;
  // Parents have smaller indices than their children: stacks that stay move to the front in their order.
  std::vector<uint32_t> moved(stacks_.size(), 0);
  for (const Thread& thread : set_)
    for (uint32_t node = thread.stack; moved[node] == 0; node = stacks_[node].parent) {
      moved[node] = 1;
      if (node == kBottom) break;
    }
  moved[kBottom] = 0;
  std::vector<uint32_t> old;
  for (uint32_t node = 1; node < stacks_.size(); ++node)
    if (moved[node] != 0) old.push_back(node);
  stack_slots_.assign(stack_slots_.size(), 0);
  const std::vector<StackNode> before(stacks_.begin(), stacks_.end());
  stacks_.resize(1);
  for (const uint32_t node : old) moved[node] = push(moved[before[node].parent], before[node].state);
  for (Thread& thread : set_) thread.stack = moved[thread.stack];
  configurations_.clear();
  threads_.clear();
  steps_.clear();
  configuration_slots_.assign(configuration_slots_.size(), 0);
  return intern_set();
}

}  // namespace headroom
