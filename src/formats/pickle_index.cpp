#include "formats/pickle_index.h"

#include <cstring>
#include <utility>

namespace headroom {
namespace {

uint64_t hash_of(std::string_view text) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;
  uint64_t hash = text.size() * kOdd;
  const auto mix = [&](uint64_t bits) {
    hash = (hash ^ bits) * kOdd;
    hash ^= hash >> 31;
  };
  while (!text.empty()) {
    uint64_t bits = 0;
    const size_t size = text.size() < 8 ? text.size() : 8;
    std::memcpy(&bits, text.data(), size);
    mix(bits);
    text.remove_prefix(size);
  }
  mix(0);
  return hash;
}

}  // namespace

std::optional<uint32_t> PickleTextIndex::find(std::string_view text) const {
  if (slots_.empty()) return std::nullopt;
  const uint64_t hash = hash_of(text);
  for (size_t i = 0; i < kProbes; ++i) {
    const Slot& slot = slots_[(hash + i) & (slots_.size() - 1)];
    if (slot.number == kFree) return std::nullopt;
    if (slot.text == text) return slot.number;
  }
  const auto at = crowded_out_.find(text);
  if (at == crowded_out_.end()) return std::nullopt;
  return at->second;
}

void PickleTextIndex::add(std::string_view text) {
  if (slots_.size() < 2 * texts_ + 2 * kProbes) grow();
  place(text, static_cast<uint32_t>(texts_++));
}

void PickleTextIndex::place(std::string_view text, uint32_t number) {
  const uint64_t hash = hash_of(text);
  for (size_t i = 0; i < kProbes; ++i) {
    Slot& slot = slots_[(hash + i) & (slots_.size() - 1)];
    if (slot.number != kFree) continue;
    slot = {text, number};
    return;
  }
  crowded_out_.emplace(text, number);
}

void PickleTextIndex::grow() {
  const auto old = std::exchange(slots_, std::vector<Slot>(slots_.empty() ? 4 * kProbes : 2 * slots_.size()));
  for (const Slot& slot : old)
    if (slot.number != kFree) place(slot.text, slot.number);
  for (const auto& [text, number] : std::exchange(crowded_out_, {})) place(text, number);
}

}  // namespace headroom
