#include "generate/block_store.h"

#include <algorithm>

#include "base/error.h"

namespace headroom {

BlockStore::BlockStore(int64_t blocks, int64_t block_tokens, bool prefix_index, int64_t park_slots)
    : block_tokens_(block_tokens), pool_(blocks), area_(park_slots, blocks) {
  if (prefix_index) index_.emplace(blocks, block_tokens);
}

int64_t BlockStore::memory_bytes(int64_t blocks, int64_t block_tokens, bool prefix_index, int64_t park_slots) {
  return BlockPool::memory_bytes(blocks) + ParkArea::memory_bytes(park_slots, blocks) +
         (prefix_index ? PrefixIndex::memory_bytes(blocks, block_tokens) : 0);
}

bool BlockStore::admit(SequenceBlocks& of, std::span<const int32_t> prompt, int64_t needed, Promise promise,
                       bool reuse) {
  const int64_t most = reuse && index_ ? (static_cast<int64_t>(prompt.size()) - 1) / block_tokens_ : 0;
  if (promise == Promise::whole && needed - most > available()) return false;
  of.table.clear();
  of.table.reserve(static_cast<size_t>(needed));
  if (area_.size() > 0) of.parked.reserve(static_cast<size_t>(needed));
  int64_t woken = 0;  // kept blocks that are used again
  int32_t parent = of.root;
  for (int64_t i = 0; i < most; ++i) {
    const auto begin = static_cast<size_t>(i * block_tokens_);
    parent = index_->find(parent, prompt.subspan(begin, static_cast<size_t>(block_tokens_)));
    if (parent == PrefixIndex::kNone) break;
    woken += index_->in_use(parent) ? 0 : 1;
    of.table.push_back(parent);
  }
  const auto found = static_cast<int64_t>(of.table.size());
  if ((promise == Promise::whole ? needed - found : 0) + woken > available()) {
    of.table.clear();
    return false;
  }
  for (const int32_t block : of.table) share_indexed(block);
  of.indexed = found;
  of.promised = 0;
  of.unpromised = needed - found;
  if (promise == Promise::whole) promise_rest(of);
  return true;
}

void BlockStore::promise_rest(SequenceBlocks& of) {
  HR_CHECK(of.unpromised <= available(), "{} blocks are promised, {} available", of.unpromised, available());
  of.promised += of.unpromised;
  promised_ += of.unpromised;
  of.unpromised = 0;
}

void BlockStore::take_back_promise(SequenceBlocks& of) {
  promised_ -= of.promised;
  of.unpromised += of.promised;
  of.promised = 0;
}

void BlockStore::count_taken(SequenceBlocks& of) {
  if (of.promised > 0) {
    --of.promised;
    --promised_;
    return;
  }
  HR_CHECK(of.unpromised > 0, "a sequence takes its block {} beyond what it may have", of.table.size());
  --of.unpromised;
}

void BlockStore::grow(SequenceBlocks& of, int64_t count) {
  while (static_cast<int64_t>(of.table.size()) < count) {
    HR_CHECK(of.promised > 0 || available() > 0, "a sequence takes its block {}, which is promised to others",
             of.table.size());
    count_taken(of);
    of.table.push_back(take());
  }
}

int32_t BlockStore::take() {
  if (pool_.free() == 0) {
    HR_CHECK(kept() > 0, "none of the {} blocks is free or kept, {} are promised", pool_.size(), promised_);
    pool_.release(index_->evict());
  }
  const int32_t block = pool_.take();
  area_.forget(block);
  return block;
}

void BlockStore::share_indexed(int32_t block) {
  if (!index_->in_use(block)) index_->use(block);
  pool_.share(block);
}

void BlockStore::release_one(int32_t block) {
  if (pool_.release(block) == 1 && index_ && index_->in_use(block)) index_->keep(block);
}

void BlockStore::commit(SequenceBlocks& of, std::span<const int32_t> tokens, int64_t filled) {
  if (!index_) return;
  for (; (of.indexed + 1) * block_tokens_ <= filled; ++of.indexed) {
    const auto at = static_cast<size_t>(of.indexed);
    const int32_t parent = at > 0 ? of.table[at - 1] : of.root;
    const auto text = tokens.subspan(at * static_cast<size_t>(block_tokens_), static_cast<size_t>(block_tokens_));
    const int32_t own = of.table[at], same = index_->find(parent, text);
    if (same == PrefixIndex::kNone) {
      index_->insert(own, parent, text);
      pool_.share(own);
    } else {
      share_indexed(same);
      release_one(own);
      of.table[at] = same;
    }
  }
}

bool BlockStore::follow(SequenceBlocks& of, std::span<const int32_t> prompt) {
  const auto at = static_cast<size_t>(of.indexed), size = static_cast<size_t>(block_tokens_);
  if (!index_ || of.indexed >= (static_cast<int64_t>(prompt.size()) - 1) / block_tokens_) return false;
  const int32_t parent = at > 0 ? of.table[at - 1] : of.root;
  const int32_t same = index_->find(parent, prompt.subspan(at * size, size));
  if (same == PrefixIndex::kNone) return false;
  share_indexed(same);
  if (at < of.table.size()) {
    release_one(of.table[at]);
    of.table[at] = same;
  } else {
    count_taken(of);
    of.table.push_back(same);
  }
  ++of.indexed;
  return true;
}

void BlockStore::release_table(SequenceBlocks& of) {
  for (size_t i = of.table.size(); i > 0; --i) release_one(of.table[i - 1]);
  of.table.clear();
}

void BlockStore::release(SequenceBlocks& of) {
  release_table(of);
  for (const int32_t slot : of.parked) area_.release(slot);
  of.parked.clear();
  take_back_promise(of);
  of.unpromised = of.indexed = 0;
}

int64_t BlockStore::frees(const SequenceBlocks& of) const {
  int64_t alone = 0;
  for (size_t i = 0; i < of.table.size(); ++i)
    alone += pool_.owners(of.table[i]) == (static_cast<int64_t>(i) < of.indexed ? 2 : 1) ? 1 : 0;
  return alone;
}

int64_t BlockStore::park(SequenceBlocks& of, const CopyBlock& save) {
  int64_t copied = 0;
  try {
    for (size_t i = 0; i < of.table.size(); ++i) {
      const ParkArea::Hold hold = area_.hold(of.table[i], static_cast<int64_t>(i) < of.indexed);
      of.parked.push_back(hold.slot);
      if (!hold.fresh) continue;
      save(of.table[i], hold.slot);
      ++copied;
    }
  } catch (...) {
    for (const int32_t slot : of.parked) area_.release(slot);
    of.parked.clear();
    throw;
  }
  leave(of);
  return copied;
}

void BlockStore::leave(SequenceBlocks& of) {
  take_back_promise(of);
  of.unpromised += static_cast<int64_t>(of.table.size());
  release_table(of);
}

void BlockStore::reclaim(SequenceBlocks& of, std::span<const int32_t> tokens) {
  const auto size = static_cast<size_t>(block_tokens_);
  int32_t parent = of.root;
  for (size_t i = 0; index_ && i < static_cast<size_t>(of.indexed); ++i) {
    parent = index_->find(parent, tokens.subspan(i * size, size));
    if (parent == PrefixIndex::kNone) return;
    share_indexed(parent);
    of.table.push_back(parent);
    --of.unpromised;
  }
}

int64_t BlockStore::restore(SequenceBlocks& of, std::span<const int32_t> tokens, const CopyBlock& load) {
  const auto size = static_cast<size_t>(block_tokens_);
  const size_t found = of.table.size();
  for (size_t i = found; i < of.parked.size(); ++i) {
    grow(of, static_cast<int64_t>(i) + 1);
    const int32_t block = of.table[i];
    load(of.parked[i], block);
    if (static_cast<int64_t>(i) >= of.indexed) continue;
    index_->insert(block, i > 0 ? of.table[i - 1] : of.root, tokens.subspan(i * size, size));
    pool_.share(block);
    area_.returned(of.parked[i], block);
  }
  const auto copied = static_cast<int64_t>(of.parked.size() - found);
  for (const int32_t slot : of.parked) area_.release(slot);
  of.parked.clear();
  return copied;
}

void BlockStore::check(std::span<const SequenceBlocks* const> all) const {
  pool_.check();
  check_park(all);
  if (index_) index_->check();
  std::vector<int32_t> owners(static_cast<size_t>(pool_.size()));
  int64_t promised = 0;
  for (const SequenceBlocks* of : all) {
    promised += of->promised;
    for (size_t i = 0; i < of->table.size(); ++i) {
      ++owners[static_cast<size_t>(of->table[i])];
      const bool indexed = index_ && index_->contains(of->table[i]);
      HR_CHECK(indexed == (static_cast<int64_t>(i) < of->indexed), "block {} of a sequence, of {} in the index, {}", i,
               of->indexed, indexed ? "is there" : "is not there");
    }
  }
  HR_CHECK(promised == promised_ && available() >= 0, "{} blocks are promised, {} counted, {} free and {} kept",
           promised, promised_, pool_.free(), kept());
  for (int32_t block = 0; block < static_cast<int32_t>(owners.size()); ++block) {
    const int32_t sequences = owners[static_cast<size_t>(block)];
    const bool indexed = index_ && index_->contains(block);
    HR_CHECK(pool_.owners(block) == sequences + (indexed ? 1 : 0), "block {} has {} owners, {} counted", block,
             sequences, pool_.owners(block));
    HR_CHECK(!indexed || index_->in_use(block) == (sequences > 0), "block {} is in use by {} sequences", block,
             sequences);
    HR_CHECK(indexed || sequences <= 1, "block {} is shared by {} sequences outside the index", block, sequences);
  }
}

void BlockStore::check_park(std::span<const SequenceBlocks* const> all) const {
  std::vector<const std::vector<int32_t>*> parked;
  for (const SequenceBlocks* of : all) {
    HR_CHECK(of->parked.empty() || (of->table.empty() && of->promised == 0),
             "a sequence with {} parked blocks has {} others, and {} promised", of->parked.size(), of->table.size(),
             of->promised);
    parked.push_back(&of->parked);
  }
  area_.check(parked);
}

}  // namespace headroom
