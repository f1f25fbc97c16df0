// Which blocks of the KV pool hold which part of which sequence: shared prefixes, promises, eviction, parking.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "generate/block_pool.h"
#include "generate/park_area.h"
#include "generate/prefix_index.h"

namespace headroom {

// The blocks of one sequence.
struct SequenceBlocks {
  int32_t root = PrefixIndex::kNone;  // a negative number at the start of its text in the index
  std::vector<int32_t> table;         // in the order of positions
  int64_t indexed = 0;                // how many of the first are in the index, or were when it was parked
  int64_t promised = 0;               // more that it may take at any time
  int64_t unpromised = 0;             // how many more it may take if they can be spared
  std::vector<int32_t> parked;        // instead of a table: slots of the park area
};

enum class Promise : uint8_t { whole, none };

// Copies a block between the pool and the park area; may throw.
using CopyBlock = std::function<void(int32_t from, int32_t to)>;

// A block is free, owned by sequences, or kept: in the index, owned by no sequence. There are always at least as many
// free and kept blocks as promised ones, so a sequence gets promised blocks at once, by evicting kept ones. Only full
// blocks are shared, which are no longer written. A parked sequence owns no block. Used by one thread.
class BlockStore {
 public:
  // `park_slots`: blocks that the park area holds.
  BlockStore(int64_t blocks, int64_t block_tokens, bool prefix_index, int64_t park_slots = 0);

  // Lets a sequence have `needed` blocks in total, promised or not. With `reuse`, those that the index has for the
  // beginning of the prompt are given at once, except the one with the prompt's last token, which must be computed.
  // False, with nothing changed, if there are too few. The table's capacity becomes `needed`, and that of parked slots
  // if there is a park area: no heap call later.
  bool admit(SequenceBlocks& of, std::span<const int32_t> prompt, int64_t needed, Promise promise, bool reuse);
  // Takes blocks until the table has `count`; those that are not promised must be available().
  void grow(SequenceBlocks& of, int64_t count);
  // Blocks that are neither owned nor promised.
  int64_t available() const { return pool_.free() + kept() - promised_; }
  // The first `filled` of `tokens` are in the blocks: blocks that became full are entered in the index. If the index
  // already has the same text, its block replaces the sequence's own.
  void commit(SequenceBlocks& of, std::span<const int32_t> tokens, int64_t filled);
  // If the index now has the next block of the prompt, computed by another sequence, takes it instead of the sequence's
  // own block, which is not full yet. Never the block of the prompt's last token. False: nothing changed.
  bool follow(SequenceBlocks& of, std::span<const int32_t> prompt);
  // Returns all blocks and slots and cancels the promise; blocks in the index are kept.
  void release(SequenceBlocks& of);

  // Whether the park area has room for the sequence, and how many blocks it would free.
  bool can_park(const SequenceBlocks& of) const { return area_.fits(of.table, of.indexed); }
  int64_t frees(const SequenceBlocks& of) const;
  // Copies the blocks by `save` (a block, a slot) and returns them and the promise; a full block that was already
  // copied for another sequence is not copied again. Returns how many were copied. If `save` throws, nothing has
  // changed.
  int64_t park(SequenceBlocks& of, const CopyBlock& save);
  // The first part of resuming: takes the blocks of a parked sequence that the index still has; the rest that it may
  // have becomes promised if that is requested and available. leave() undoes it.
  void reclaim(SequenceBlocks& of, std::span<const int32_t> tokens);
  void promise_rest(SequenceBlocks& of);
  void leave(SequenceBlocks& of);
  // The second part: the other blocks by `load` (a slot, a block); they must be promised or available. Returns how many
  // were copied. If `load` throws, the sequence can only be released.
  int64_t restore(SequenceBlocks& of, std::span<const int32_t> tokens, const CopyBlock& load);

  int64_t block_tokens() const { return block_tokens_; }
  int64_t size() const { return pool_.size(); }
  int64_t kept() const { return index_ ? index_->kept() : 0; }
  int64_t used() const { return pool_.size() - pool_.free() - kept(); }

  int64_t park_slots() const { return area_.size(); }
  int64_t park_slots_used() const { return area_.used(); }

  static int64_t memory_bytes(int64_t blocks, int64_t block_tokens, bool prefix_index, int64_t park_slots);
  // Throws InternalError unless `all` sequences own exactly what is counted, each block as often.
  void check(std::span<const SequenceBlocks* const> all) const;

 private:
  int32_t take();
  // Adds or removes a sequence as owner of a block in the index.
  void share_indexed(int32_t block);
  void release_one(int32_t block);
  void release_table(SequenceBlocks& of);
  void take_back_promise(SequenceBlocks& of);
  // One of the blocks that it may have is now in its table.
  void count_taken(SequenceBlocks& of);
  void check_park(std::span<const SequenceBlocks* const> all) const;

  int64_t block_tokens_;
  BlockPool pool_;  // the index is an owner of its blocks
  std::optional<PrefixIndex> index_;
  ParkArea area_;
  int64_t promised_ = 0;
};

}  // namespace headroom
