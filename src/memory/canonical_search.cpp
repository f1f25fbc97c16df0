#include "memory/canonical_search.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace headroom {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

}  // namespace

CanonicalSearch::CanonicalSearch(const Timeline& timeline, int64_t capacity)
    : capacity_(capacity), count_(static_cast<int32_t>(timeline.items.size())) {
  for (const TimelineItem& item : timeline.items) size_.push_back(item.size);
  build_sections(timeline);
  build_neighbours(timeline);
}

// Keeps the slots whose set of live items is not contained in a neighbouring slot's: those where an item begins, if one
// ends before the next begins.
void CanonicalSearch::build_sections(const Timeline& timeline) {
  const auto slots = static_cast<size_t>(timeline.slot_count());
  std::vector<char> begins(slots + 1, 0);
  std::vector<char> ends(slots + 1, 0);
  for (const TimelineItem& item : timeline.items) {
    begins[static_cast<size_t>(item.lower)] = 1;
    ends[static_cast<size_t>(item.upper)] = 1;
  }
  std::vector<int32_t> section_of(slots + 1, 0);  // number of sections before the slot
  int32_t sections = 0;
  bool grown = false;
  for (size_t slot = 0; slot < slots; ++slot) {
    section_of[slot] = sections;
    grown = grown || begins[slot];
    if (grown && ends[slot + 1]) {
      ++sections;
      grown = false;
    }
  }
  section_of[slots] = sections;
  sections_.resize(static_cast<size_t>(sections));
  for (int32_t i = 0; i < count_; ++i) {
    const TimelineItem& item = timeline.items[static_cast<size_t>(i)];
    first_section_.push_back(section_of[static_cast<size_t>(item.lower)]);
    last_section_.push_back(section_of[static_cast<size_t>(item.upper)] - 1);
    for (int32_t s = first_section_.back(); s <= last_section_.back(); ++s)
      sections_[static_cast<size_t>(s)].push_back({0, i});
  }
}

void CanonicalSearch::build_neighbours(const Timeline& timeline) {
  neighbours_.resize(static_cast<size_t>(count_));
  for (int32_t a = 0; a < count_; ++a) {
    const TimelineItem& item = timeline.items[static_cast<size_t>(a)];
    for (int32_t b = 0; b < count_; ++b) {
      const TimelineItem& other = timeline.items[static_cast<size_t>(b)];
      if (a != b && item.lower < other.upper && other.lower < item.upper) {
        neighbours_[static_cast<size_t>(a)].push_back(b);
      }
    }
  }
}

std::vector<int64_t> CanonicalSearch::crowding() const {
  std::vector<int64_t> most(static_cast<size_t>(count_), 0);
  for (const auto& section : sections_) {
    int64_t sum = 0;
    for (const Ranked& entry : section) sum += size_[static_cast<size_t>(entry.item)];
    for (const Ranked& entry : section) {
      most[static_cast<size_t>(entry.item)] = std::max(most[static_cast<size_t>(entry.item)], sum);
    }
  }
  return most;
}

void CanonicalSearch::reset() {
  const auto n = static_cast<size_t>(count_);
  support_.assign(n, 0);
  bound_.assign(n, 0);
  skipped_.assign(n, 0);
  placed_.assign(n, 0);
  offsets_.assign(n, 0);
  order_.resize(n);
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(), [this](int32_t a, int32_t b) {
    return first_section_[static_cast<size_t>(a)] < first_section_[static_cast<size_t>(b)];
  });
  trail_.clear();
  nodes_ = 0;
  unplaced_in_.clear();
  for (auto& section : sections_) {
    std::sort(section.begin(), section.end(), [](const Ranked& a, const Ranked& b) { return a.item < b.item; });
    unplaced_in_.push_back(section.size());
  }
}

CanonicalSearch::Outcome CanonicalSearch::run(const std::vector<double>& priority, int64_t node_limit) {
  reset();
  priority_ = priority;
  node_limit_ = node_limit;
  for (int32_t s = 0; s < static_cast<int32_t>(sections_.size()); ++s) {
    if (!section_fits(s)) return Outcome::none;
  }
  for (const Segment& segment : split({0, count_})) {
    if (!solve(segment)) return nodes_ > node_limit_ ? Outcome::gave_up : Outcome::none;
  }
  return Outcome::found;
}

// Cuts a segment into parts that no unplaced item connects, the smallest first. Segments are sorted by first section.
std::vector<CanonicalSearch::Segment> CanonicalSearch::split(Segment segment) const {
  std::vector<Segment> parts;
  int32_t reach = -1;
  for (int32_t k = segment.begin; k < segment.end; ++k) {
    const auto item = static_cast<size_t>(order_[static_cast<size_t>(k)]);
    if (first_section_[item] > reach) parts.push_back({k, k});
    parts.back().end = k + 1;
    reach = std::max(reach, last_section_[item]);
  }
  if (parts.size() > 1) {
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Segment& a, const Segment& b) { return a.end - a.begin < b.end - b.begin; });
  }
  return parts;
}

// Places all items of a segment; on failure everything is as it was before.
bool CanonicalSearch::solve(Segment segment) {
  const size_t entry = trail_.size();
  for (;;) {
    if (++nodes_ > node_limit_) break;
    int64_t floor = 0;
    if (!propagate(segment, floor)) break;
    const int32_t item = choose(segment, floor);
    const size_t mark = trail_.size();
    bool hopeless = false;
    if (place(item, floor) && solve_rest(segment, item, floor, hopeless)) return true;
    undo(mark);
    if (hopeless || nodes_ > node_limit_) break;
    skip(item);
  }
  undo(entry);
  return false;
}

// Solves the parts into which a segment falls once `placed` lies at `offset`. `hopeless`: a part failed that the placed
// item did not affect, so that another offset for the item cannot help. A part is affected if it has an item on top of
// the placed one, or a skipped item: the skip may be why it failed, and may depend on the placed item.
bool CanonicalSearch::solve_rest(Segment segment, int32_t placed, int64_t offset, bool& hopeless) {
  const auto end = order_.begin() + segment.end;
  const auto at = std::find(order_.begin() + segment.begin, end, placed);
  std::rotate(at, at + 1, end);
  const int64_t top = offset + size_[static_cast<size_t>(placed)];
  for (const Segment& part : split({segment.begin, segment.end - 1})) {
    bool felt = false;
    for (int32_t k = part.begin; k < part.end; ++k) {
      const auto item = static_cast<size_t>(order_[static_cast<size_t>(k)]);
      felt = felt || skipped_[item] || support_[item] == top;
    }
    if (!solve(part)) {
      hopeless = !felt;
      std::rotate(at, end - 1, end);
      return false;
    }
  }
  return true;
}

// Finds the lowest support of the items that are not skipped, and raises the bounds of the skipped ones. False if some
// item can no longer be placed.
bool CanonicalSearch::propagate(Segment segment, int64_t& floor) {
  floor = kNever;
  for (int32_t k = segment.begin; k < segment.end; ++k) {
    const auto item = static_cast<size_t>(order_[static_cast<size_t>(k)]);
    if (!skipped_[item]) floor = std::min(floor, support_[item]);
  }
  if (floor == kNever) return false;
  bool changed = true;
  for (int round = 0; changed && round < 4; ++round) {
    changed = false;
    if (!lift_skipped(segment, floor, changed)) return false;
  }
  return true;
}

// A skipped item must lie on top of a neighbour that is not placed yet and begins below the item's end at its support:
// otherwise the item could be moved down.
bool CanonicalSearch::lift_skipped(Segment segment, int64_t floor, bool& changed) {
  for (int32_t k = segment.begin; k < segment.end; ++k) {
    const int32_t index = order_[static_cast<size_t>(k)];
    const auto item = static_cast<size_t>(index);
    if (!skipped_[item]) continue;
    const int64_t top = support_[item] + size_[item];
    int64_t lowest = kNever;
    for (const int32_t other_index : neighbours_[item]) {
      const auto other = static_cast<size_t>(other_index);
      if (placed_[other]) continue;
      const int64_t start = std::max(bound_[other], floor);
      if (start < top) lowest = std::min(lowest, start + size_[other]);
    }
    if (lowest == kNever) return false;
    if (lowest > bound_[item]) {
      raise_bound(index, lowest);
      changed = true;
      if (!sections_fit(index)) return false;
    }
  }
  return true;
}

int32_t CanonicalSearch::choose(Segment segment, int64_t floor) const {
  int32_t chosen = -1;
  for (int32_t k = segment.begin; k < segment.end; ++k) {
    const int32_t index = order_[static_cast<size_t>(k)];
    const auto item = static_cast<size_t>(index);
    if (skipped_[item] || support_[item] != floor) continue;
    if (chosen < 0 || priority_[item] > priority_[static_cast<size_t>(chosen)] ||
        (priority_[item] == priority_[static_cast<size_t>(chosen)] && index < chosen)) {
      chosen = index;
    }
  }
  return chosen;
}

// Places an item and raises the supports of its neighbours; false if a section overflows.
bool CanonicalSearch::place(int32_t index, int64_t offset) {
  const auto item = static_cast<size_t>(index);
  trail_.push_back({Change::Kind::place, index, 0});
  placed_[item] = 1;
  for (int32_t s = first_section_[item]; s <= last_section_[item]; ++s) --unplaced_in_[static_cast<size_t>(s)];
  offsets_[item] = offset;
  const int64_t top = offset + size_[item];
  int32_t first = first_section_[item];
  int32_t last = last_section_[item];
  for (const int32_t other_index : neighbours_[item]) {
    const auto other = static_cast<size_t>(other_index);
    if (placed_[other] || support_[other] >= top) continue;
    trail_.push_back({Change::Kind::support, other_index, support_[other]});
    support_[other] = top;
    if (skipped_[other]) {
      trail_.push_back({Change::Kind::skip, other_index, 1});
      skipped_[other] = 0;
    }
    if (bound_[other] < top) {
      raise_bound(other_index, top);
      first = std::min(first, first_section_[other]);
      last = std::max(last, last_section_[other]);
    }
  }
  for (int32_t s = first; s <= last; ++s) {
    if (!section_fits(s)) return false;
  }
  return true;
}

void CanonicalSearch::skip(int32_t item) {
  trail_.push_back({Change::Kind::skip, item, 0});
  skipped_[static_cast<size_t>(item)] = 1;
}

void CanonicalSearch::raise_bound(int32_t item, int64_t bound) {
  trail_.push_back({Change::Kind::bound, item, bound_[static_cast<size_t>(item)]});
  bound_[static_cast<size_t>(item)] = bound;
}

bool CanonicalSearch::sections_fit(int32_t index) {
  const auto item = static_cast<size_t>(index);
  for (int32_t s = first_section_[item]; s <= last_section_[item]; ++s) {
    if (!section_fits(s)) return false;
  }
  return true;
}

// The unplaced items of a section, stacked in order of their bounds, must end within the capacity. Placed items gather
// at the front of the list: their bounds are the lowest.
bool CanonicalSearch::section_fits(int32_t section) {
  std::vector<Ranked>& items = sections_[static_cast<size_t>(section)];
  int64_t previous = -1;
  for (size_t k = 0; k < items.size(); ++k) {
    const Ranked moved{bound_[static_cast<size_t>(items[k].item)], items[k].item};
    items[k].bound = moved.bound;
    if (moved.bound >= previous) {
      previous = moved.bound;
      continue;
    }
    size_t hole = k;
    for (; hole > 0 && items[hole - 1].bound > moved.bound; --hole) items[hole] = items[hole - 1];
    items[hole] = moved;
  }
  int64_t sum = 0;
  for (size_t k = items.size(), left = unplaced_in_[static_cast<size_t>(section)]; left > 0; --k) {
    const auto item = static_cast<size_t>(items[k - 1].item);
    if (placed_[item]) continue;
    --left;
    sum += size_[item];
    if (items[k - 1].bound + sum > capacity_) return false;
  }
  return true;
}

void CanonicalSearch::undo(size_t mark) {
  while (trail_.size() > mark) {
    const Change& change = trail_.back();
    const auto item = static_cast<size_t>(change.item);
    switch (change.kind) {
      case Change::Kind::support:
        support_[item] = change.before;
        break;
      case Change::Kind::bound:
        bound_[item] = change.before;
        break;
      case Change::Kind::skip:
        skipped_[item] = static_cast<char>(change.before);
        break;
      case Change::Kind::place:
        placed_[item] = 0;
        for (int32_t s = first_section_[item]; s <= last_section_[item]; ++s) ++unplaced_in_[static_cast<size_t>(s)];
        break;
    }
    trail_.pop_back();
  }
}

}  // namespace headroom
