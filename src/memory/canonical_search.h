// Depth-first search for an assignment within a capacity, over canonical ones only (docs/offset_assignment.md).
//
// Take the assignment whose offsets have the smallest sum: none of its items can be moved down. So each item lies at 0
// or on top of another, and the assignment can be built in order of offset. A node of the search finds the lowest
// support among the items that are neither placed nor skipped, and branches on one item there: either it lies at its
// support, or it is skipped, which means that an item placed later will lie below it. Ideas from MiniMalloc (ASPLOS
// 2023).
#pragma once

#include <cstdint>
#include <vector>

#include "memory/timeline.h"

namespace headroom {

class CanonicalSearch {
 public:
  enum class Outcome { found, none, gave_up };

  // `capacity` in the unit of the item sizes. Pins are ignored; items of size zero are not allowed.
  CanonicalSearch(const Timeline& timeline, int64_t capacity);

  // Searches from scratch. If several items could be placed next, tries the one with the largest `priority` first.
  Outcome run(const std::vector<double>& priority, int64_t node_limit);

  int64_t nodes() const { return nodes_; }                          // of the last run
  const std::vector<int64_t>& offsets() const { return offsets_; }  // after `found`
  // By item: the largest sum of sizes in a slot in which it is live.
  std::vector<int64_t> crowding() const;

 private:
  struct Change {  // one undoable step
    enum class Kind : uint8_t { support, bound, skip, place } kind;
    int32_t item;
    int64_t before;
  };
  struct Segment {  // unplaced items order_[begin, end), sorted by first section
    int32_t begin;
    int32_t end;
  };

  struct Ranked {
    int64_t bound;  // bound_[item] when the section was last checked
    int32_t item;
  };

  void build_sections(const Timeline& timeline);
  void build_neighbours(const Timeline& timeline);
  void reset();

  bool solve(Segment segment);
  bool solve_rest(Segment segment, int32_t placed, int64_t offset, bool& hopeless);
  std::vector<Segment> split(Segment segment) const;
  int32_t choose(Segment segment, int64_t floor) const;
  bool propagate(Segment segment, int64_t& floor);
  bool lift_skipped(Segment segment, int64_t floor, bool& changed);
  bool place(int32_t item, int64_t offset);
  void skip(int32_t item);
  void raise_bound(int32_t item, int64_t bound);
  bool sections_fit(int32_t item);
  bool section_fits(int32_t section);
  void undo(size_t mark);

  int64_t capacity_;
  int32_t count_ = 0;
  std::vector<int64_t> size_;
  std::vector<int32_t> first_section_, last_section_;  // inclusive
  std::vector<std::vector<Ranked>> sections_;          // items of each section, kept nearly sorted by bound
  std::vector<std::vector<int32_t>> neighbours_;       // items that conflict

  std::vector<int64_t> support_;  // highest end of the placed neighbours
  std::vector<int64_t> bound_;    // no solution below this node has the item lower; >= support_
  std::vector<char> skipped_;     // the item does not lie at its support
  std::vector<char> placed_;
  std::vector<size_t> unplaced_in_;  // items of each section not placed
  std::vector<int64_t> offsets_;
  std::vector<int32_t> order_;
  std::vector<double> priority_;
  std::vector<Change> trail_;
  int64_t nodes_ = 0;
  int64_t node_limit_ = 0;
};

}  // namespace headroom
