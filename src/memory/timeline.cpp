#include "memory/timeline.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace headroom {
namespace {

constexpr int64_t kByteLimit = int64_t{1} << 62;

[[noreturn]] void refuse(const Buffer& buffer, size_t index, const char* what, int64_t value, const char* remedy) {
  throw Error(ErrorKind::usage, fmt::format("buffer {} (number {}): {} {}", buffer.id, index, what, value), remedy);
}

void validate(const Buffer& buffer, size_t index, int64_t alignment) {
  if (buffer.upper <= buffer.lower) {
    refuse(buffer, index, "lifetime ends at or before its start, upper", buffer.upper, "make upper larger than lower");
  }
  if (buffer.size < 0) refuse(buffer, index, "negative size", buffer.size, "give a size of zero or more bytes");
  if (buffer.size > kByteLimit - alignment) {
    refuse(buffer, index, "size beyond 2^62 bytes:", buffer.size, "give a smaller size");
  }
  if (buffer.pinned_offset < -1) {
    refuse(buffer, index, "negative pinned offset", buffer.pinned_offset, "use -1 for a buffer without a pin");
  }
  if (buffer.pinned_offset > 0 && buffer.pinned_offset % alignment != 0) {
    refuse(buffer, index, "pinned offset is not aligned:", buffer.pinned_offset,
           "pin to a multiple of the alignment, or lower the alignment");
  }
  if (buffer.pinned_offset > kByteLimit - alignment) {
    refuse(buffer, index, "pinned offset beyond 2^62 bytes:", buffer.pinned_offset, "pin it lower");
  }
}

// Slots where some buffer begins or ends, ascending and unique.
std::vector<int64_t> cut_slots(std::span<const Buffer> buffers) {
  std::vector<int64_t> cuts;
  cuts.reserve(buffers.size() * 2);
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = std::numeric_limits<int64_t>::min();
  for (const Buffer& buffer : buffers) {
    first = std::min(first, buffer.lower);
    last = std::max(last, buffer.upper);
  }
  const uint64_t range = static_cast<uint64_t>(last) - static_cast<uint64_t>(first);
  if (range <= buffers.size() * 8 + 64) {
    std::vector<char> seen(range + 1, 0);
    for (const Buffer& buffer : buffers) {
      seen[static_cast<size_t>(buffer.lower - first)] = 1;
      seen[static_cast<size_t>(buffer.upper - first)] = 1;
    }
    for (size_t i = 0; i < seen.size(); ++i) {
      if (seen[i]) cuts.push_back(first + static_cast<int64_t>(i));
    }
    return cuts;
  }
  for (const Buffer& buffer : buffers) {
    cuts.push_back(buffer.lower);
    cuts.push_back(buffer.upper);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

// Maps an original slot to its dense number, by a table if the cuts lie close together.
class SlotNumbers {
 public:
  explicit SlotNumbers(const std::vector<int64_t>& cuts) : cuts_(cuts) {
    const uint64_t range = static_cast<uint64_t>(cuts.back()) - static_cast<uint64_t>(cuts.front());
    if (range > cuts.size() * 16 + 64) return;
    table_.resize(range + 1);
    for (size_t i = 0; i < cuts.size(); ++i) {
      table_[static_cast<size_t>(cuts[i] - cuts.front())] = static_cast<int32_t>(i);
    }
  }

  int32_t operator()(int64_t slot) const {
    if (!table_.empty()) return table_[static_cast<size_t>(slot - cuts_.front())];
    return static_cast<int32_t>(std::lower_bound(cuts_.begin(), cuts_.end(), slot) - cuts_.begin());
  }

 private:
  const std::vector<int64_t>& cuts_;
  std::vector<int32_t> table_;
};

}  // namespace

Timeline make_timeline(std::span<const Buffer> buffers, int64_t alignment) {
  if (alignment < 1 || alignment > kByteLimit / 2) {
    throw Error(ErrorKind::usage, fmt::format("alignment {} is out of range", alignment), "use 64 for CPUs");
  }
  Timeline timeline;
  if (buffers.empty()) return timeline;
  if (buffers.size() > size_t{1} << 29) {
    throw Error(ErrorKind::usage, fmt::format("{} buffers are too many", buffers.size()), "split the timeline");
  }
  int64_t total = 0;
  int64_t highest_pin = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    validate(buffer, i, alignment);
    const int64_t padding = (alignment - buffer.size % alignment) % alignment;
    timeline.items.push_back({0, 0, buffer.size + padding, buffer.pinned_offset});
    timeline.has_pins = timeline.has_pins || buffer.pinned_offset >= 0;
    highest_pin = std::max(highest_pin, buffer.pinned_offset);
    total += buffer.size + padding;  // both summands are at most 2^62
    if (total > kByteLimit - highest_pin) {
      refuse(buffer, i, "with it the sizes sum up beyond 2^62 bytes; its size is", buffer.size, "give smaller sizes");
    }
  }
  timeline.slot_starts = cut_slots(buffers);
  const SlotNumbers number(timeline.slot_starts);
  for (size_t i = 0; i < buffers.size(); ++i) {
    timeline.items[i].lower = number(buffers[i].lower);
    timeline.items[i].upper = number(buffers[i].upper);
  }
  timeline.slot_starts.pop_back();  // nothing lives after the last end
  return timeline;
}

std::vector<int64_t> live_bytes(const Timeline& timeline) {
  // Differences are added modulo 2^64; every prefix sum is a sum of live sizes, so it fits.
  std::vector<uint64_t> change(timeline.slot_starts.size() + 1, 0);
  for (const TimelineItem& item : timeline.items) {
    change[static_cast<size_t>(item.lower)] += static_cast<uint64_t>(item.size);
    change[static_cast<size_t>(item.upper)] -= static_cast<uint64_t>(item.size);
  }
  std::vector<int64_t> live(timeline.slot_starts.size());
  uint64_t sum = 0;
  for (size_t slot = 0; slot < live.size(); ++slot) {
    sum += change[slot];
    live[slot] = static_cast<int64_t>(sum);
  }
  return live;
}

}  // namespace headroom
