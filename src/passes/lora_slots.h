// Slots for LoRA adapters in the steps of a server: each row of a step uses the adapter of its slot, or none.
//
// What: every targeted product y = x W^T gets matrices for `count` adapters side by side,
//     y' = lora_rows(x, A, B, scales, slots, y)
//   with A [count, rank, in], B [count, rank, out] (each adapter's B on its side) and scales f32[count], which are
//   data: the host fills them between runs of the programs. The slots of the rows are data of each program. An
//   adapter of a smaller rank leaves zeros.
// Placed here because: beside adapters, before codes and precisions, which see weights alone; the new nodes come before
//   the first reader of what they change, so that products of one input still become a group.
// Costs: count x rank x (in + out) numbers of each targeted product; of each row two thin products, and nothing of rows
//   without an adapter but a look at their slot.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace headroom {

struct LoraSlots {
  int64_t count = 0;  // 0: none
  int64_t rank = 0;   // the largest of an adapter
  DType dtype = DType::f32;
  std::vector<std::string> targets{"all-linear"};  // as in LoraOptions

  bool operator==(const LoraSlots&) const = default;
};

// The prefix of all names of slots.
inline constexpr std::string_view kSlotPrefix = "lora_slots.";
// The matrices of a weight's slots: `which` is 'A' or 'B'.
std::string slot_name(std::string_view weight, char which);
inline constexpr std::string_view kSlotScales = "lora_slots.scales";
// The data of a step of so many rows: i32[rows], the slot of each, -1 for none.
std::string slot_rows_name(int64_t rows);

// Acts on the region of a step, whose rows are the first dimension of its products' inputs. Head, routers and experts
// get no slots. Returns the number of products. Throws Error(usage) for a target that matches none.
int64_t add_lora_slots(Graph& graph, RegionId region, const LoraSlots& slots);

}  // namespace headroom
