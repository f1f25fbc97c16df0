#include "generate/prefix_index.h"

#include <algorithm>
#include <bit>

#include "base/counter_random.h"
#include "base/error.h"

namespace headroom {

PrefixIndex::PrefixIndex(int64_t blocks, int64_t block_tokens, int64_t buckets)
    : block_tokens_(block_tokens),
      entries_(static_cast<size_t>(blocks)),
      tokens_(static_cast<size_t>(blocks * block_tokens)),
      buckets_(static_cast<size_t>(buckets > 0 ? buckets : buckets_for(blocks)), kNone) {}

int64_t PrefixIndex::buckets_for(int64_t blocks) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(blocks, 1))));
}

int64_t PrefixIndex::memory_bytes(int64_t blocks, int64_t block_tokens) {
  return blocks * static_cast<int64_t>(sizeof(Entry)) +
         (blocks * block_tokens + buckets_for(blocks)) * static_cast<int64_t>(sizeof(int32_t));
}

std::span<int32_t> PrefixIndex::tokens_of(int32_t block) {
  return std::span(tokens_).subspan(static_cast<size_t>(block * block_tokens_), static_cast<size_t>(block_tokens_));
}

std::span<const int32_t> PrefixIndex::tokens_of(int32_t block) const {
  return std::span(tokens_).subspan(static_cast<size_t>(block * block_tokens_), static_cast<size_t>(block_tokens_));
}

size_t PrefixIndex::bucket(int32_t parent, std::span<const int32_t> tokens) const {
  uint64_t hash = mix64(static_cast<uint32_t>(parent));
  for (const int32_t token : tokens) hash = mix64(hash ^ static_cast<uint32_t>(token));
  return static_cast<size_t>(hash % buckets_.size());
}

int32_t PrefixIndex::find(int32_t parent, std::span<const int32_t> tokens) const {
  int32_t block = buckets_[bucket(parent, tokens)];
  while (block != kNone && (entry(block).parent != parent || !std::ranges::equal(tokens_of(block), tokens)))
    block = entry(block).next_in_bucket;
  return block;
}

void PrefixIndex::insert(int32_t block, int32_t parent, std::span<const int32_t> tokens) {
  HR_CHECK(!contains(block) && static_cast<int64_t>(tokens.size()) == block_tokens_,
           "block {} is in the index, or has {} tokens", block, tokens.size());
  HR_CHECK(parent < 0 || in_use(parent), "block {} follows block {}, which is not in use", block, parent);
  std::ranges::copy(tokens, tokens_of(block).begin());
  int32_t& first = buckets_[bucket(parent, tokens)];
  entry(block) = {parent, 0, first, kNone, kNone, State::used};
  first = block;
  if (parent >= 0) ++entry(parent).children;
  ++size_;
}

void PrefixIndex::unlink(Entry& of) {
  (of.before == kNone ? oldest_ : entry(of.before).after) = of.after;
  (of.after == kNone ? newest_ : entry(of.after).before) = of.before;
  of.before = of.after = kNone;
  --kept_;
}

void PrefixIndex::use(int32_t block) {
  Entry& of = entry(block);
  HR_CHECK(of.state == State::kept, "block {} is in use, or not in the index", block);
  unlink(of);
  of.state = State::used;
}

void PrefixIndex::keep(int32_t block) {
  Entry& of = entry(block);
  HR_CHECK(of.state == State::used, "block {} is not in use", block);
  of.state = State::kept;
  of.before = newest_;
  (newest_ == kNone ? oldest_ : entry(newest_).after) = block;
  newest_ = block;
  ++kept_;
}

int32_t PrefixIndex::evict() {
  HR_CHECK(oldest_ != kNone, "all {} entries are in use", size_);
  const int32_t block = oldest_;
  Entry& of = entry(block);
  HR_CHECK(of.children == 0, "block {} is evicted before {} blocks that follow it", block, of.children);
  unlink(of);
  int32_t* link = &buckets_[bucket(of.parent, tokens_of(block))];
  while (*link != block) link = &entry(*link).next_in_bucket;
  *link = of.next_in_bucket;
  if (of.parent >= 0) --entry(of.parent).children;
  of = {};
  --size_;
  return block;
}

void PrefixIndex::check_entry(int32_t block) const {
  const Entry& of = entry(block);
  HR_CHECK(find(of.parent, tokens_of(block)) == block, "block {} is not found by its tokens", block);
  HR_CHECK(of.parent < 0 || contains(of.parent), "block {} follows block {}, which is not there", block, of.parent);
  HR_CHECK(of.parent < 0 || in_use(of.parent) || !in_use(block), "block {} is in use and block {} before it not", block,
           of.parent);
}

void PrefixIndex::check() const {
  int64_t entries = 0, listed = 0;
  std::vector<int32_t> children(entries_.size());
  std::vector<bool> passed(entries_.size());
  for (int32_t block = 0; block < static_cast<int32_t>(entries_.size()); ++block) {
    if (!contains(block)) continue;
    check_entry(block);
    ++entries;
    if (entry(block).parent >= 0) ++children[static_cast<size_t>(entry(block).parent)];
  }
  HR_CHECK(entries == size_, "{} entries, {} counted", entries, size_);
  for (int32_t block = 0; block < static_cast<int32_t>(entries_.size()); ++block)
    HR_CHECK(entry(block).children == children[static_cast<size_t>(block)], "block {} has {} children, {} counted",
             block, children[static_cast<size_t>(block)], entry(block).children);
  for (int32_t block = oldest_; block != kNone; block = entry(block).after, ++listed) {
    HR_CHECK(entry(block).state == State::kept && listed < size_, "block {} is in the list, and in use", block);
    passed[static_cast<size_t>(block)] = true;
    const int32_t parent = entry(block).parent;
    HR_CHECK(parent < 0 || !passed[static_cast<size_t>(parent)], "block {} is evicted after its parent", block);
  }
  HR_CHECK(listed == kept_, "{} entries wait to be evicted, {} counted", listed, kept_);
}

}  // namespace headroom
