// Numbers texts by their content: a hash table that no choice of texts makes slow.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace headroom {

// The caller keeps the texts. A lookup probes at most kProbes slots; a text that finds all of them taken goes into a
// tree. So the worst case is O(log n); usually one slot is read.
class PickleTextIndex {
 public:
  std::optional<uint32_t> find(std::string_view text) const;
  // Adds a text that find() does not know; its number is size() before the call.
  void add(std::string_view text);
  size_t size() const { return texts_; }

 private:
  static constexpr size_t kProbes = 16;
  struct Slot {
    std::string_view text;
    uint32_t number = kFree;
  };
  static constexpr uint32_t kFree = ~uint32_t{0};
  void place(std::string_view text, uint32_t number);
  void grow();

  std::vector<Slot> slots_;  // their number is a power of two
  std::map<std::string_view, uint32_t> crowded_out_;
  size_t texts_ = 0;
};

}  // namespace headroom
