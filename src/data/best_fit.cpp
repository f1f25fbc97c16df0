#include "data/best_fit.h"

#include <bit>

#include "base/error.h"

namespace headroom {
namespace {

// The bins, by the room that is left in them.
class Rooms {
 public:
  explicit Rooms(int32_t capacity)
      : top_(static_cast<size_t>(capacity) + 1, -1), held_((static_cast<size_t>(capacity) + 64) / 64) {}

  void push(int32_t room, int32_t bin) {
    if (static_cast<size_t>(bin) >= below_.size()) below_.resize(static_cast<size_t>(bin) + 1);
    below_[static_cast<size_t>(bin)] = top_[static_cast<size_t>(room)];
    top_[static_cast<size_t>(room)] = bin;
    held_[static_cast<size_t>(room) / 64] |= uint64_t{1} << (room % 64);
  }

  // The smallest room of any bin that is at least `length`, or -1.
  int32_t least(int32_t length) const {
    size_t word = static_cast<size_t>(length) / 64;
    uint64_t bits = held_[word] & (~uint64_t{0} << (length % 64));
    while (bits == 0)
      if (++word == held_.size())
        return -1;
      else
        bits = held_[word];
    return static_cast<int32_t>(word * 64) + std::countr_zero(bits);
  }

  int32_t pop(int32_t room) {
    int32_t& top = top_[static_cast<size_t>(room)];
    const int32_t bin = top;
    top = below_[static_cast<size_t>(bin)];
    if (top < 0) held_[static_cast<size_t>(room) / 64] &= ~(uint64_t{1} << (room % 64));
    return bin;
  }

 private:
  std::vector<int32_t> top_;    // by room: the bin pushed last, or -1
  std::vector<int32_t> below_;  // by bin: the bin pushed before it with the same room, or -1
  std::vector<uint64_t> held_;  // a bit per room: whether a bin has it
};

// The items by descending length, equal ones in their order (a counting sort).
std::vector<int32_t> descending(std::span<const int32_t> lengths, int32_t capacity) {
  std::vector<int32_t> begin(static_cast<size_t>(capacity) + 2, 0), order(lengths.size());
  for (int32_t length : lengths) {
    HR_CHECK(length >= 1 && length <= capacity, "an item of {} for bins of {}", length, capacity);
    ++begin[static_cast<size_t>(capacity - length) + 1];
  }
  for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  for (size_t i = 0; i < lengths.size(); ++i)
    order[static_cast<size_t>(begin[static_cast<size_t>(capacity - lengths[i])]++)] = static_cast<int32_t>(i);
  return order;
}

}  // namespace

int32_t best_fit_decreasing(std::span<const int32_t> lengths, int32_t capacity, std::span<int32_t> bin_of) {
  HR_CHECK(capacity >= 1 && lengths.size() == bin_of.size(), "{} items, {} places", lengths.size(), bin_of.size());
  Rooms rooms(capacity);
  int32_t bins = 0;
  for (const int32_t item : descending(lengths, capacity)) {
    const int32_t length = lengths[static_cast<size_t>(item)];
    const int32_t found = rooms.least(length);
    const int32_t bin = found < 0 ? bins++ : rooms.pop(found);
    bin_of[static_cast<size_t>(item)] = bin;
    rooms.push((found < 0 ? capacity : found) - length, bin);
  }
  return bins;
}

}  // namespace headroom
