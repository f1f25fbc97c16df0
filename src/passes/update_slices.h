// Updates of large tables, a slice of rows at a time: a step of the offload passes.
//
// What: an update of a matrix whose f32 form takes more than `bytes` becomes several, each of a slice of its rows
//   (ir/row_slice.h):
//     w', m', v' = adamw(w, g, m, v)
//   becomes
//     w1, m1, v1 = adamw(w, g, m, v)  rows=n first_row=0;  w', m', v' = adamw(w1, g, m1, v1)  rows=n first_row=n
//   The windows of values below the device (device_windows.h) then hold a slice each.
// Legal when: the update is elementwise (Op::update_grain() is 1). The same bits: each element's update is the same,
//   including the draws that round a bf16 weight, which are keyed by the index in the whole weight.
// Saves: of a table with 4 windows (weight, gradient, two moments), all but a slice of each. Costs: a copy per slice.
// Source: sub-groups of ZeRO-Infinity (Rajbhandari et al. 2021, section 5), DeepSpeed's sub_group_size.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"
#include "ir/row_slice.h"

namespace headroom {

// Cuts at boundaries of disk blocks; `bytes`: the most that the f32 form of a slice takes, rounded up to such a
// boundary.
void slice_updates(Graph& graph, int64_t bytes);

// The slices of a dense matrix of this type, in order: of whole disk blocks, the most that `bytes` hold as f32, or the
// least if that is more. One slice has all rows.
std::vector<RowSlice> slices_of(const Type& matrix, int64_t bytes);

// The f32 bytes for a slice of a large table: those of the largest matrix of a layer, whose windows an update needs in
// any case.
int64_t slice_bytes(const Graph& graph);

}  // namespace headroom
