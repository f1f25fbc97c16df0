// Products of 8-bit codes: the setting int8-mixed of quantize-training.
//
// What: sets attributes of the layers' linear products, from which autodiff gives their gradients' products theirs.
//     y = linear(x, w)   becomes   y = linear(x, w) {multiply = int8, multiply_dx = int8, multiply_dw = int8}
//   Their kernels turn both operands into codes at every call, with a scale for each row of the one and each column of
//   the other, and sum in integers (ops/linear/int8.h). Results, storage and everything else stay as they are.
// Legal when: named: lossy. Head, embedding, routers, experts and adapters' thin products are left out, and so are
//   matrices with fewer than 32 rows or columns.
// Placed here because: before autodiff, which knows which gradients are whose.
// Saves: no bytes. Costs: scratch, two bytes for each element of an operand.
// Sources: torchao's int8_mixed_precision_training.
// Manuals: M4 (T23).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace headroom {

// Which of a layer's products.
struct Int8Parts {
  bool output = true;
  bool grad_input = true;
  bool grad_weight = true;
};

inline constexpr std::string_view kInt8Mixed = "int8-mixed";

// "int8-mixed", or some of the products: "int8-mixed:output+grad_input". Nothing if the text is neither.
std::optional<Int8Parts> int8_parts(std::string_view setting);
// The text of such a setting.
std::string int8_setting(const Int8Parts& parts);

// Acts on the layers of a forward program. Returns how many there are.
int64_t multiply_in_int8(Graph& graph, RegionId region, const Int8Parts& parts);

}  // namespace headroom
