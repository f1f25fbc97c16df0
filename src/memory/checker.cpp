#include "memory/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace headroom {
namespace {

// Aligned end of a buffer at an offset, or nothing if it does not fit in 63 bits.
std::optional<int64_t> aligned_end(int64_t offset, int64_t size, int64_t alignment) {
  const int64_t remainder = size % alignment;
  int64_t end = 0;
  if (__builtin_add_overflow(offset, size, &end)) return std::nullopt;
  if (remainder != 0 && __builtin_add_overflow(end, alignment - remainder, &end)) return std::nullopt;
  return end;
}

std::optional<std::string> check_one(const Buffer& buffer, int64_t offset, int64_t alignment) {
  if (buffer.upper <= buffer.lower || buffer.size < 0) {
    return fmt::format("buffer {} is malformed: slots [{}, {}), {} bytes", buffer.id, buffer.lower, buffer.upper,
                       buffer.size);
  }
  if (offset < 0) return fmt::format("buffer {} has the negative offset {}", buffer.id, offset);
  if (offset % alignment != 0) {
    return fmt::format("buffer {} has the offset {}, not a multiple of {}", buffer.id, offset, alignment);
  }
  if (buffer.pinned_offset != -1 && offset != buffer.pinned_offset) {
    return fmt::format("buffer {} is pinned to {} but placed at {}", buffer.id, buffer.pinned_offset, offset);
  }
  if (!aligned_end(offset, buffer.size, alignment)) {
    return fmt::format("buffer {} of {} bytes at offset {} ends beyond 63 bits", buffer.id, buffer.size, offset);
  }
  return std::nullopt;
}

// Sweeps over time. The live buffers never overlap, so a new one can only collide with its neighbours by offset.
std::optional<std::string> find_overlap(std::span<const Buffer> buffers, const std::vector<int64_t>& offsets,
                                        int64_t alignment) {
  struct Event {
    int64_t slot;
    bool begins;  // ends sort before begins of the same slot: lifetimes are half-open
    size_t index;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].size == 0) continue;
    events.push_back({buffers[i].lower, true, i});
    events.push_back({buffers[i].upper, false, i});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.slot, a.begins, a.index) < std::tie(b.slot, b.begins, b.index);
  });
  std::map<int64_t, size_t> live;  // offset -> buffer
  for (const Event& event : events) {
    if (!event.begins) {
      live.erase(offsets[event.index]);
      continue;
    }
    const auto above = live.lower_bound(offsets[event.index]);
    std::optional<size_t> hit;
    if (above != live.end() &&
        above->first < *aligned_end(offsets[event.index], buffers[event.index].size, alignment)) {
      hit = above->second;
    } else if (above != live.begin()) {
      const auto [offset, index] = *std::prev(above);
      if (*aligned_end(offset, buffers[index].size, alignment) > offsets[event.index]) hit = index;
    }
    if (hit) {
      return fmt::format("buffers {} (offset {}) and {} (offset {}) overlap in slot {}", buffers[*hit].id,
                         offsets[*hit], buffers[event.index].id, offsets[event.index], event.slot);
    }
    live.emplace_hint(above, offsets[event.index], event.index);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_violation(std::span<const Buffer> buffers, const OffsetAssignment& assignment,
                                          int64_t alignment, int64_t capacity) {
  if (alignment < 1) return fmt::format("the alignment {} is not positive", alignment);
  if (assignment.offsets.size() != buffers.size()) {
    return fmt::format("{} offsets for {} buffers", assignment.offsets.size(), buffers.size());
  }
  int64_t highest = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (auto violation = check_one(buffers[i], assignment.offsets[i], alignment)) return violation;
    highest = std::max(highest, *aligned_end(assignment.offsets[i], buffers[i].size, alignment));
  }
  if (highest != assignment.peak) {
    return fmt::format("the peak is stated as {} but the highest end is {}", assignment.peak, highest);
  }
  if (capacity > 0 && highest > capacity) {
    return fmt::format("the peak {} is above the capacity {}", highest, capacity);
  }
  return find_overlap(buffers, assignment.offsets, alignment);
}

}  // namespace headroom
