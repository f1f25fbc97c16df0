// Which blocks of the KV pool hold which part of which sequence: shared beginnings, promises and evictions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "generate/block_pool.h"
#include "generate/prefix_index.h"

namespace headroom {

// The blocks of one sequence.
struct SequenceBlocks {
  int32_t root = PrefixIndex::kNone;  // below zero: what its text begins with in the index
  std::vector<int32_t> table;         // in the order of positions
  int64_t indexed = 0;                // as many of the first are in the index
  int64_t promised = 0;               // more that it may take
};

// A block is free, owned by sequences, or kept: in the index, owned by no sequence. Free and kept blocks together are
// never fewer than those promised, so that a sequence gets what it was promised at once, by evicting what is kept.
// Owners share full blocks only, which nobody writes any more. Used by one thread.
class BlockStore {
 public:
  BlockStore(int64_t blocks, int64_t block_tokens, bool prefix_index);

  // Promises `needed` blocks in all, of which those that the index has for the beginning of the prompt are given at
  // once, where `reuse`; not the one that holds the prompt's last token, which has to be computed. False, and nothing
  // changed, where there are too few. The table's capacity becomes `needed`: no heap call later.
  bool admit(SequenceBlocks& of, std::span<const int32_t> prompt, int64_t needed, bool reuse);
  // Takes promised blocks until the table has `count`.
  void grow(SequenceBlocks& of, int64_t count);
  // The first `filled` of `tokens` are in the blocks: those that became full are entered in the index. Where it has the
  // same text already, its block takes the place of the sequence's own.
  void commit(SequenceBlocks& of, std::span<const int32_t> tokens, int64_t filled);
  // Where the index has the next block of the prompt by now, as another sequence has computed it: takes it, in place of
  // the sequence's own that is not full yet. Not the block of the prompt's last token. False: nothing changed.
  bool follow(SequenceBlocks& of, std::span<const int32_t> prompt);
  // Gives back all blocks and the promise; those in the index are kept.
  void release(SequenceBlocks& of);

  int64_t block_tokens() const { return block_tokens_; }
  int64_t size() const { return pool_.size(); }
  int64_t kept() const { return index_ ? index_->kept() : 0; }
  int64_t used() const { return pool_.size() - pool_.free() - kept(); }

  static int64_t memory_bytes(int64_t blocks, int64_t block_tokens, bool prefix_index);
  // Throws InternalError unless `all` sequences own what is counted, each block as often.
  void check(std::span<const SequenceBlocks* const> all) const;

 private:
  int32_t take();
  // A sequence more, or less, owns a block of the index.
  void share_indexed(int32_t block);
  void release_one(int32_t block);
  int64_t available() const { return pool_.free() + kept() - promised_; }

  int64_t block_tokens_;
  BlockPool pool_;  // the index is an owner of its blocks
  std::optional<PrefixIndex> index_;
  int64_t promised_ = 0;
};

}  // namespace headroom
