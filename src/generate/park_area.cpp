#include "generate/park_area.h"

#include "base/error.h"

namespace headroom {

ParkArea::ParkArea(int64_t slots, int64_t blocks)
    : slots_(slots), slot_of_(static_cast<size_t>(blocks), kNone), block_of_(static_cast<size_t>(slots), kNone) {}

bool ParkArea::fits(std::span<const int32_t> table, int64_t full) const {
  auto needed = static_cast<int64_t>(table.size());
  for (const int32_t block : table.first(static_cast<size_t>(full)))
    if (slot_of_[static_cast<size_t>(block)] != kNone) --needed;
  return needed <= slots_.free();
}

ParkArea::Hold ParkArea::hold(int32_t block, bool full) {
  int32_t& known = slot_of_[static_cast<size_t>(block)];
  if (full && known != kNone) {
    slots_.share(known);
    return {known, false};
  }
  const int32_t slot = slots_.take();
  if (full) {
    known = slot;
    block_of_[static_cast<size_t>(slot)] = block;
  }
  return {slot, true};
}

void ParkArea::untie(int32_t slot) {
  int32_t& block = block_of_[static_cast<size_t>(slot)];
  if (block != kNone) slot_of_[static_cast<size_t>(block)] = kNone;
  block = kNone;
}

void ParkArea::release(int32_t slot) {
  if (slots_.release(slot) == 0) untie(slot);
}

void ParkArea::returned(int32_t slot, int32_t block) {
  forget(block);
  untie(slot);
  slot_of_[static_cast<size_t>(block)] = slot;
  block_of_[static_cast<size_t>(slot)] = block;
}

void ParkArea::forget(int32_t block) {
  if (const int32_t slot = slot_of_[static_cast<size_t>(block)]; slot != kNone) untie(slot);
}

int64_t ParkArea::memory_bytes(int64_t slots, int64_t blocks) {
  return BlockPool::memory_bytes(slots) + (slots + blocks) * static_cast<int64_t>(sizeof(int32_t));
}

void ParkArea::check(std::span<const std::vector<int32_t>* const> all) const {
  slots_.check();
  std::vector<int32_t> owners(static_cast<size_t>(slots_.size()));
  for (const std::vector<int32_t>* held : all)
    for (const int32_t slot : *held) ++owners[static_cast<size_t>(slot)];
  for (int32_t slot = 0; slot < static_cast<int32_t>(owners.size()); ++slot) {
    const int32_t block = block_of_[static_cast<size_t>(slot)];
    HR_CHECK(slots_.owners(slot) == owners[static_cast<size_t>(slot)], "slot {} has {} owners, {} counted", slot,
             owners[static_cast<size_t>(slot)], slots_.owners(slot));
    HR_CHECK(block == kNone || (slots_.owners(slot) > 0 && slot_of_[static_cast<size_t>(block)] == slot),
             "slot {} has the copy of block {}, which does not know it", slot, block);
  }
}

}  // namespace headroom
