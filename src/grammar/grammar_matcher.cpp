#include "grammar/grammar_matcher.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"

namespace headroom {
namespace {

constexpr int64_t kStepsBetweenChecks = 4096;

}  // namespace

GrammarMatcher::GrammarMatcher(const PushdownAutomaton& automaton, const TokenTrie& trie, const TokenBytes& tokens,
                               std::vector<int32_t> end_ids, const GrammarLimits& limits)
    : trie_(trie),
      tokens_(tokens),
      end_ids_(std::move(end_ids)),
      limits_(limits),
      configurations_(automaton, limits),
      at_(configurations_.start()),
      leading_(tokens.leading_spaces()),
      mask_(trie.vocab()),
      kept_mask_(trie.vocab()),
      path_(TokenTrie::kLongestToken + 1) {
  std::erase_if(end_ids_, [&](int32_t id) { return id < 0 || id >= trie.vocab(); });
}

int64_t GrammarMatcher::memory_bytes() const {
  const auto mask = static_cast<int64_t>(mask_.words().size_bytes());
  // One more during construction.
  return configurations_.memory_bytes() + 2 * mask + std::max(cache_bytes(), largest_kept()) + largest_kept() +
         static_cast<int64_t>(path_.size() * sizeof(ConfigurationId));
}

int64_t GrammarMatcher::largest_kept() const {
  // A growing list takes up to twice its contents.
  return static_cast<int64_t>(2 * sizeof(KeptMask) + mask_.words().size_bytes() +
                              2 * most_leaving() * sizeof(uint32_t));
}

template <typename Body>
void GrammarMatcher::with_tables(const Body& body) {
  try {
    return body();
  } catch (const Configurations::Full&) {
    kept_.clear();
    kept_bytes_ = 0;
    at_ = configurations_.forget(at_);
  }
  try {
    body();
  } catch (const Configurations::Full&) {
    throw Error(ErrorKind::run, "the grammar has too many places for one mask: its tables are full",
                "make it smaller, or write it so that fewer alternatives begin the same way");
  }
}

void GrammarMatcher::check_work() {
  if (steps_ + configurations_.work() - work_before_ > limits_.mask_steps)
    throw Error(ErrorKind::run, fmt::format("a mask of the grammar takes more than {} steps", limits_.mask_steps),
                "make it smaller, or write it so that fewer alternatives begin the same way");
}

const TokenMask& GrammarMatcher::allowed() {
  if (known_) return mask_;
  with_tables([&] {
    steps_ = 0;
    work_before_ = configurations_.work();
    mask_.clear();
    if (at_ == Configurations::kDead) return;
    if (leading_ > 0)
      compute_first();
    else
      compute();
  });
  // The id that ends the text may also be an ordinary token; it is then not used as one.
  for (const int32_t id : end_ids_) mask_.set(id, may_end());
  known_ = true;
  return mask_;
}

void GrammarMatcher::compute() {
  const Configurations::Split split = configurations_.split(at_);
  const bool whole = split.behind == Configurations::kDead;
  const KeptMask* part = kept(split.above, whole);
  if (!part) part = kept(at_, true);
  mask_.allow(part->words);
  if (part->whole) return;
  for (const uint32_t node : part->leaving) walk(split.behind, node + 1, trie_.skip(node), mask_, nullptr);
}

// The text's beginning, where spaces are dropped.
void GrammarMatcher::compute_first() {
  if (tokens_.only_of_first_token()) {
    walk(at_, 1, trie_.size(), mask_, nullptr, true);
    return;
  }
  uint32_t node = 0;
  for (int32_t left = leading_; left > 0; --left) {
    uint32_t space = 0;
    for (uint32_t child = node + 1; child < trie_.skip(node); child = trie_.skip(child)) {
      if (trie_.byte(child) == ' ')
        space = child;
      else
        walk(at_, child, trie_.skip(child), mask_, nullptr);
    }
    if (space == 0) return;
    for (const int32_t id : trie_.ids(space)) mask_.allow(id);
    node = space;
  }
  walk(at_, node + 1, trie_.skip(node), mask_, nullptr);
}

bool GrammarMatcher::walk(ConfigurationId from, uint32_t begin, uint32_t end, TokenMask& mask,
                          std::vector<uint32_t>* leaving, bool drops_spaces) {
  if (begin >= end) return true;
  path_[trie_.depth(begin) - 1U] = from;
  for (uint32_t node = begin; node < end;) {
    const size_t depth = trie_.depth(node);
    const uint8_t byte = trie_.byte(node);
    const ConfigurationId at = path_[depth - 1];
    const ConfigurationId next = drops_spaces && byte == ' ' ? at : configurations_.step(at, byte);
    if (++steps_ % kStepsBetweenChecks == 0) check_work();
    if (next == Configurations::kDead) {
      node = trie_.skip(node);
      continue;
    }
    path_[depth] = next;
    for (const int32_t id : trie_.ids(node)) mask.allow(id);
    if (leaving && configurations_.ends(next)) {
      if (leaving->size() == most_leaving()) return false;
      leaving->push_back(node);
    }
    ++node;
  }
  check_work();
  return true;
}

GrammarMatcher::KeptMask* GrammarMatcher::find_kept(ConfigurationId id, bool whole) {
  for (KeptMask& mask : kept_)
    if (mask.id == id && mask.whole == whole) return &mask;
  return nullptr;
}

const GrammarMatcher::KeptMask* GrammarMatcher::kept(ConfigurationId id, bool whole) {
  ++uses_;
  if (KeptMask* found = find_kept(id, whole)) {
    ++kept_used_;
    found->last_used = uses_;
    return found;
  }
  ++computed_;
  KeptMask made{id, whole, uses_, {}, {}};
  kept_mask_.clear();
  if (!walk(id, 1, trie_.size(), kept_mask_, whole ? nullptr : &made.leaving)) return nullptr;
  made.words.assign(kept_mask_.words().begin(), kept_mask_.words().end());
  made.leaving.shrink_to_fit();
  make_room(made.bytes());
  kept_bytes_ += made.bytes();
  kept_.push_back(std::move(made));
  return &kept_.back();
}

void GrammarMatcher::make_room(int64_t bytes) {
  while (!kept_.empty() && kept_bytes_ + bytes > cache_bytes()) {
    const auto oldest = std::min_element(
        kept_.begin(), kept_.end(), [](const KeptMask& a, const KeptMask& b) { return a.last_used < b.last_used; });
    kept_bytes_ -= oldest->bytes();
    kept_.erase(oldest);
  }
}

void GrammarMatcher::accept(int32_t id) {
  std::string text = tokens_.of(id);
  if (leading_ > 0 && tokens_.only_of_first_token()) {
    std::erase(text, ' ');
    leading_ = 0;
  }
  for (; leading_ > 0 && text.starts_with(' '); --leading_) text.erase(0, 1);
  if (!text.empty()) leading_ = 0;
  with_tables([&] {
    ConfigurationId next = at_;
    for (const char byte : text) {
      next = configurations_.step(next, static_cast<uint8_t>(byte));
      HR_CHECK(next != Configurations::kDead, "token {} does not go on with the grammar's text", id);
    }
    at_ = next;
  });
  known_ = false;
}

}  // namespace headroom
