// The space-time taken by placed buffers, with a fast search for free gaps.
//
// A gap query for a lifetime needs the placed entries that intersect it, in order of offset. With a single list sorted
// by offset, every query would scan all entries. So the time axis is also cut into chunks of several widths, each chunk
// with its own list; a query uses the narrowest chunk that holds its lifetime. An entry that is live throughout a chunk
// is a wall, and walls that touch merge: the saved activations below a short-lived temporary are one entry.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "memory/timeline.h"

namespace headroom {

enum class FitRule {
  first,  // the lowest gap that is large enough
  best,   // the smallest gap that is large enough, the lowest of equals
};

// Entries sorted by offset, in blocks so that insertion moves little memory. Each block knows the slots it spans.
class OffsetList {
 public:
  OffsetList(int32_t lower, int32_t upper) : lower_(lower), upper_(upper) {}

  void insert(int64_t offset, int64_t end, int32_t lower, int32_t upper);
  // As in Occupancy; adds the entries that it visits to `visited`.
  int64_t find_gap(const TimelineItem& item, FitRule rule, int64_t& visited);
  bool is_free(const TimelineItem& item, int64_t offset) const;
  void clear() { blocks_.clear(); }

 private:
  struct Entry {
    int64_t offset;
    int64_t end;
    int32_t lower;
    int32_t upper;
  };
  // Facts about a block for items that conflict with every entry of it.
  struct Summary {
    int32_t latest_lower = 0;  // the latest first slot of an entry, and the earliest end of one
    int32_t earliest_upper = 0;
    int64_t end = 0;          // of the highest entry
    int64_t largest_gap = 0;  // between the entries
  };
  struct Block {
    int32_t lower;  // hull of the entries' slots
    int32_t upper;
    std::vector<Entry> entries;
    bool summarized = false;  // the summary is up to date
    Summary summary = {};
  };

  size_t block_for(int64_t offset) const;
  static const Summary& summary_of(Block& block);
  bool merge_wall(Block& block, size_t position, int64_t offset, int64_t end) const;
  void split(size_t block_index);

  int32_t lower_;
  int32_t upper_;
  std::vector<Block> blocks_;
};

class Occupancy {
 public:
  explicit Occupancy(const Timeline& timeline);

  // Forgets all placed entries.
  void clear();

  // Marks the item's slots x [offset, offset + size) as taken. Items of size zero are ignored.
  void place(const TimelineItem& item, int64_t offset);

  // The offset that the rule picks for the item; above every conflicting item if no gap is large enough.
  int64_t find_gap(const TimelineItem& item, FitRule rule);

  // Whether nothing placed conflicts with the item at the offset.
  bool is_free(const TimelineItem& item, int64_t offset) const;

  // Entries visited and inserted since construction: a measure of effort that is the same on every machine.
  int64_t work() const { return work_; }

 private:
  // Chunk c of a level covers the slots [c * width, (c + 2) * width): any lifetime up to `width` lies inside one chunk.
  struct Level {
    int32_t width;
    std::vector<OffsetList> chunks;
  };
  // The narrowest chunk that holds the item's lifetime: its level, and its index there.
  std::pair<size_t, size_t> chunk_for(const TimelineItem& item) const;

  std::vector<Level> levels_;  // narrowest first; the last one is a single chunk over everything
  int64_t work_ = 0;
};

}  // namespace headroom
