// The state of a text in a grammar, and the tokens that may come next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "grammar/configurations.h"
#include "grammar/token_mask.h"
#include "grammar/token_trie.h"

namespace headroom {

// One text. After every token of a mask the text can be completed to one of the grammar; tokens that end a text are
// allowed exactly where it may end.
//
// A mask is the union of two parts: the tokens that stay within the open rules of the configuration, which are found
// once, whatever surrounds these rules, and those that leave them, which are few.
class GrammarMatcher {
 public:
  // All except `end_ids` outlive this. `end_ids` are never part of the text.
  GrammarMatcher(const PushdownAutomaton& automaton, const TokenTrie& trie, const TokenBytes& tokens,
                 std::vector<int32_t> end_ids, const GrammarLimits& limits);

  // The tokens that may come next; none if the grammar cannot be followed with this vocabulary. Throws Error(run)
  // beyond the limits.
  const TokenMask& allowed();
  // Advances by a token of the last mask, not one that ends the text.
  void accept(int32_t id);

  bool may_end() const { return at_ != Configurations::kDead && configurations_.ends(at_); }
  // Whether nothing can follow.
  bool must_end() const { return at_ == Configurations::kDead || !configurations_.goes_on(at_); }

  // A bound on the matcher's memory: its tables, kept masks, the mask itself. Known before construction.
  int64_t memory_bytes() const;

  // Masks that were looked up and those that were computed.
  int64_t kept_masks_used() const { return kept_used_; }
  int64_t masks_computed() const { return computed_; }

 private:
  struct KeptMask {
    ConfigurationId id;
    bool whole;  // else without the part that the configuration's threads share
    int64_t last_used;
    std::vector<uint64_t> words;
    std::vector<uint32_t> leaving;  // not whole: nodes at which the text leaves the rules
    int64_t bytes() const {
      return static_cast<int64_t>(sizeof(KeptMask) + words.capacity() * sizeof(uint64_t) +
                                  leaving.capacity() * sizeof(uint32_t));
    }
  };
  void compute();
  void compute_first();
  // Null if too many nodes leave the rules to keep them.
  const KeptMask* kept(ConfigurationId id, bool whole);
  KeptMask* find_kept(ConfigurationId id, bool whole);
  void make_room(int64_t bytes);
  int64_t largest_kept() const;
  int64_t cache_bytes() const { return std::min(limits_.cache_bytes, limits_.kept_masks * largest_kept()); }
  size_t most_leaving() const { return trie_.size() / 8; }
  // Marks the tokens of nodes [begin, end), whose parent is in `from`. False if `leaving` would be too long.
  bool walk(ConfigurationId from, uint32_t begin, uint32_t end, TokenMask& mask, std::vector<uint32_t>* leaving,
            bool drops_spaces = false);
  void check_work();
  // Runs `body`, again with empty tables if they became full.
  template <typename Body>
  void with_tables(const Body& body);

  const TokenTrie& trie_;
  const TokenBytes& tokens_;
  std::vector<int32_t> end_ids_;
  GrammarLimits limits_;
  Configurations configurations_;
  ConfigurationId at_;
  int32_t leading_;  // spaces still to be dropped from the text
  bool known_ = false;
  TokenMask mask_, kept_mask_;
  std::vector<ConfigurationId> path_;
  std::vector<KeptMask> kept_;
  int64_t kept_bytes_ = 0, uses_ = 0, steps_ = 0, kept_used_ = 0, computed_ = 0, work_before_ = 0;
};

}  // namespace headroom
