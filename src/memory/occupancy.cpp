#include "memory/occupancy.h"

#include <algorithm>
#include <limits>

namespace headroom {
namespace {

constexpr size_t kBlockCapacity = 64;
constexpr int32_t kLevelRatio = 16;
constexpr int64_t kChunksPerItem = 8;  // target: how many of the narrowest chunks an item lies in, on average

}  // namespace

size_t OffsetList::block_for(int64_t offset) const {
  const auto above = std::upper_bound(blocks_.begin(), blocks_.end(), offset, [](int64_t value, const Block& block) {
    return value < block.entries.front().offset;
  });
  return above == blocks_.begin() ? 0 : static_cast<size_t>(above - blocks_.begin()) - 1;
}

// Joins a wall with the walls it touches in the block; false if it touches none.
bool OffsetList::merge_wall(Block& block, size_t position, int64_t offset, int64_t end) const {
  const auto is_wall = [this](const Entry& entry) { return entry.lower <= lower_ && entry.upper >= upper_; };
  const bool joins_below =
      position > 0 && block.entries[position - 1].end == offset && is_wall(block.entries[position - 1]);
  const bool joins_above =
      position < block.entries.size() && block.entries[position].offset == end && is_wall(block.entries[position]);
  if (joins_below && joins_above) {
    block.entries[position - 1].end = block.entries[position].end;
    block.entries.erase(block.entries.begin() + static_cast<std::ptrdiff_t>(position));
  } else if (joins_below) {
    block.entries[position - 1].end = end;
  } else if (joins_above) {
    block.entries[position].offset = offset;
  }
  return joins_below || joins_above;
}

void OffsetList::split(size_t block_index) {
  constexpr auto kHalf = static_cast<std::ptrdiff_t>(kBlockCapacity / 2);
  Block upper_half{};
  {
    std::vector<Entry>& entries = blocks_[block_index].entries;
    upper_half.entries.reserve(kBlockCapacity);
    upper_half.entries.assign(entries.begin() + kHalf, entries.end());
    entries.resize(kBlockCapacity / 2);
  }
  blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(block_index) + 1, std::move(upper_half));
  for (size_t i = block_index; i < block_index + 2; ++i) {
    Block& block = blocks_[i];
    block.summarized = false;
    block.lower = std::numeric_limits<int32_t>::max();
    block.upper = 0;
    for (const Entry& entry : block.entries) {
      block.lower = std::min(block.lower, entry.lower);
      block.upper = std::max(block.upper, entry.upper);
    }
  }
}

void OffsetList::insert(int64_t offset, int64_t end, int32_t lower, int32_t upper) {
  lower = std::max(lower, lower_);
  upper = std::min(upper, upper_);
  if (blocks_.empty()) {
    blocks_.push_back({lower, upper, {}, false, {}});
    blocks_.back().entries.push_back({offset, end, lower, upper});
    return;
  }
  const size_t block_index = block_for(offset);
  Block& block = blocks_[block_index];
  block.summarized = false;
  const auto place = std::upper_bound(block.entries.begin(), block.entries.end(), offset,
                                      [](int64_t value, const Entry& entry) { return value < entry.offset; });
  const bool wall = lower == lower_ && upper == upper_;
  if (wall && merge_wall(block, static_cast<size_t>(place - block.entries.begin()), offset, end)) return;
  block.entries.insert(place, {offset, end, lower, upper});
  block.lower = std::min(block.lower, lower);
  block.upper = std::max(block.upper, upper);
  if (block.entries.size() == kBlockCapacity) split(block_index);
}

const OffsetList::Summary& OffsetList::summary_of(Block& block) {
  if (block.summarized) return block.summary;
  Summary summary{block.lower, block.upper, block.entries.front().offset, 0};
  for (const Entry& entry : block.entries) {
    summary.latest_lower = std::max(summary.latest_lower, entry.lower);
    summary.earliest_upper = std::min(summary.earliest_upper, entry.upper);
    summary.largest_gap = std::max(summary.largest_gap, entry.offset - summary.end);
    summary.end = std::max(summary.end, entry.end);
  }
  block.summary = summary;
  block.summarized = true;
  return block.summary;
}

int64_t OffsetList::find_gap(const TimelineItem& item, FitRule rule, int64_t& visited) {
  int64_t cursor = 0;  // end of the conflicting entries seen so far
  int64_t best_offset = -1;
  int64_t best_gap = std::numeric_limits<int64_t>::max();
  for (Block& block : blocks_) {
    ++visited;
    if (block.upper <= item.lower || block.lower >= item.upper) continue;
    visited += static_cast<int64_t>(block.entries.size());
    // Skips a block if all its entries conflict and no gap inside or before it is large enough.
    const Summary& all = summary_of(block);
    if (all.latest_lower < item.upper && all.earliest_upper > item.lower && all.largest_gap < item.size &&
        block.entries.front().offset - cursor < item.size) {
      cursor = std::max(cursor, all.end);
      continue;
    }
    for (const Entry& entry : block.entries) {
      if (entry.upper <= item.lower || entry.lower >= item.upper) continue;
      const int64_t gap = entry.offset - cursor;
      if (gap >= item.size && gap < best_gap) {
        if (rule == FitRule::first) return cursor;
        best_gap = gap;
        best_offset = cursor;
      }
      cursor = std::max(cursor, entry.end);
    }
  }
  return best_offset >= 0 ? best_offset : cursor;
}

bool OffsetList::is_free(const TimelineItem& item, int64_t offset) const {
  for (const Block& block : blocks_) {
    for (const Entry& entry : block.entries) {
      const bool together = entry.lower < item.upper && item.lower < entry.upper;
      if (together && entry.offset < offset + item.size && offset < entry.end) return false;
    }
  }
  return true;
}

Occupancy::Occupancy(const Timeline& timeline) {
  const int32_t slots = std::max(timeline.slot_count(), 1);
  int64_t durations = 0;
  for (const TimelineItem& item : timeline.items) durations += item.upper - item.lower;
  const int64_t count = std::max<int64_t>(static_cast<int64_t>(timeline.items.size()), 1);
  int64_t width = std::max<int64_t>(durations / count / kChunksPerItem, 8);
  for (; width * 4 <= slots; width *= kLevelRatio) {
    Level level{static_cast<int32_t>(width), {}};
    for (int64_t lower = 0; lower < slots; lower += width) {
      level.chunks.emplace_back(static_cast<int32_t>(lower),
                                static_cast<int32_t>(std::min<int64_t>(lower + 2 * width, slots)));
    }
    levels_.push_back(std::move(level));
  }
  levels_.push_back({slots, {OffsetList(0, slots)}});
}

void Occupancy::clear() {
  for (Level& level : levels_) {
    for (OffsetList& chunk : level.chunks) chunk.clear();
  }
}

void Occupancy::place(const TimelineItem& item, int64_t offset) {
  if (item.size == 0) return;
  for (Level& level : levels_) {
    const int32_t first = std::max(item.lower / level.width - 1, 0);
    const int32_t last = (item.upper - 1) / level.width;
    work_ += last - first + 1;
    for (int32_t c = first; c <= last; ++c) {
      level.chunks[static_cast<size_t>(c)].insert(offset, offset + item.size, item.lower, item.upper);
    }
  }
}

std::pair<size_t, size_t> Occupancy::chunk_for(const TimelineItem& item) const {
  const int32_t duration = item.upper - item.lower;
  for (size_t level = 0; level < levels_.size(); ++level)
    if (duration <= levels_[level].width) return {level, static_cast<size_t>(item.lower / levels_[level].width)};
  return {levels_.size() - 1, 0};
}

int64_t Occupancy::find_gap(const TimelineItem& item, FitRule rule) {
  const auto [level, chunk] = chunk_for(item);
  return levels_[level].chunks[chunk].find_gap(item, rule, work_);
}

bool Occupancy::is_free(const TimelineItem& item, int64_t offset) const {
  const auto [level, chunk] = chunk_for(item);
  return item.size == 0 || levels_[level].chunks[chunk].is_free(item, offset);
}

}  // namespace headroom
