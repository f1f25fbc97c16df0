// Linear layers for a few rows (decoding): reading the weights takes the time, so they are read once, as they are
// stored.
#pragma once

#include <algorithm>

#include "base/threads.h"
#include "ops/cpu/kernel.h"
#include "ops/linear/row_blocks.h"
#include "ops/linear/row_products.h"
#include "ops/linear/shape.h"
#include "ops/linear/tile_rows.h"
#include "ops/linear/wide_rows.h"

namespace headroom {

// The part of a call that is known before its addresses.
struct RowsPlan {
  int64_t count = 0;  // rows of x
  int64_t ins = 0;
  bool out_in = true;
  size_t bias = 0;         // index of the first layer's bias among the inputs; the other layers' follow. 0: none
  size_t residual = 0;     // 0: none
  bool any_count = false;  // more than eight rows are allowed: attribute batch_invariant
  int64_t arranged = 0;    // rows of x that are arranged at a time, in tiles or in blocks (row_blocks.h); 0: none
  bool tiles = false;      // AMX multiplies (tile_rows.h)
  bool wide = false;       // rows of x are converted to f32 (wide_rows.h)

  int64_t pass_rows() const { return wide ? wide_rows(count, ins) : arranged > 0 ? arranged : count; }
};

// That of a call of linear or linear_group.
RowsPlan rows_plan(const KernelSpec& spec);
// Whether all weights of such a call are stored in one way; kStoredApart: why a kernel refuses others.
bool stored_alike(const KernelSpec& spec);
inline constexpr const char* kStoredApart = "weights that are stored in several ways";

// Rows of x that are multiplied in one pass over the weights.
struct PassRows {
  int64_t first = 0, count = 0;
  const void* arranged = nullptr;  // in tiles or blocks too
  const void* wide = nullptr;      // in f32 too
};

// The product of these rows and output i without its weight.
RowProduct row_product(const KernelCall& call, const RowsPlan& plan, const PassRows& rows, size_t i);

// plan.tiles for these operands; does not depend on the number of rows.
bool multiplied_on_tiles(const RowTypes& types, const RowsPlan& plan, const DeviceFacts& facts);
// plan.arranged with plan.tiles and this scratch, of which tiles need tiled_bytes(); 0 for a weight whose rows are not
// dot products.
int64_t rows_to_arrange(const RowTypes& types, const RowsPlan& plan, const DeviceFacts& facts, int64_t scratch_bytes);

// The kernel for w [outs, ins].
ColumnRange products_of(const RowTypes& types, const RowsPlan& plan, const DeviceFacts& facts);

// The rows of a pass from `first` on, in the form that the plan wants them in, which is written to `scratch`.
PassRows pass_from(const KernelCall& call, const RowsPlan& plan, int64_t first, std::byte* scratch);

// Calls columns(i, begin, end, thread) for the columns of every output i; the threads share the columns of all outputs,
// `grain` at a time.
template <typename Columns>
void share_columns(const KernelCall& call, int64_t grain, const Columns& columns) {
  int64_t outs = 0;
  for (const TensorView& y : call.outputs) outs += y.dims.back();
  parallel_for(outs, grain, [&](int64_t begin, int64_t end, int thread) {
    for (size_t i = 0; i < call.outputs.size() && end > 0; ++i) {
      const int64_t own = call.outputs[i].dims.back();
      if (begin < std::min(end, own)) columns(i, begin, std::min(end, own), thread);
      begin = std::max<int64_t>(0, begin - own), end -= own;
    }
  });
}

// Calls body(i, product, begin, end, thread) for the columns of every output i, `grain` at a time, and all rows of x in
// turn; `product` is row_product(). `scratch`: arranged_bytes() bytes if plan.arranged > 0, wide_bytes() if plan.wide.
template <typename Body>
void each_part(const KernelCall& call, const RowsPlan& plan, std::byte* scratch, int64_t grain, const Body& body) {
  for (int64_t first = 0; first < plan.count; first += plan.pass_rows()) {
    const PassRows rows = pass_from(call, plan, first, scratch);
    share_columns(call, grain, [&](size_t i, int64_t begin, int64_t end, int thread) {
      body(i, row_product(call, plan, rows, i), begin, end, thread);
    });
  }
}

// linear for at most eight rows, or with attribute batch_invariant any number; needs AVX2. A row's sums do not depend
// on the other rows.
KernelOffer make_linear_rows(const KernelSpec& spec, const DeviceFacts& facts);
// The same for linear_group: the threads share the rows of all weights, and each sum has the bits of linear's.
KernelOffer make_linear_group_rows(const KernelSpec& spec, const DeviceFacts& facts);

}  // namespace headroom
