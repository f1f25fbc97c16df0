// Products with a weight in blocks of codes: few rows of x are multiplied with codes decoded in registers; for more, a
// few rows of the weight at a time are decoded, then multiplied with all rows of x.
#include "ops/linear/cpu_coded_rows.h"

#include "base/error.h"
#include "ops/linear/coded_dot.h"
#include "ops/linear/coded_tile.h"
#include "ops/linear/row_products.h"
#include "ops/linear/scratch.h"

namespace headroom {
namespace {

struct CodedProduct {
  RowsPlan plan;
  Storage storage;
  DType x = DType::f32, y = DType::f32;
  int64_t threads = 1;  // for which there is scratch
  CodedTileDecoder decode = nullptr;
  ColumnRange range = nullptr;  // multiplies decoded rows
  CodedRange direct = nullptr;  // used instead of both if set
};

// Columns begin .. end of `whole`, a few at a time.
void run_decoded(const RowProduct& whole, const CodedProduct& product, const CodedMatrix& weight, int64_t begin,
                 int64_t end, void* decoded) {
  RowProduct piece = whole;
  piece.w = decoded;
  // With one row of x, the decoded rows stay in the first-level cache; blocks of rows have a fixed number of columns.
  const int64_t most = whole.rows == 1 ? kDecodedRows / 3 : whole.arranged ? kBlockRows : kDecodedRows;
  for (int64_t out = begin; out < end; out += most) {
    const int64_t count = std::min(most, end - out);
    product.decode(weight, out * whole.ins, count * whole.ins, decoded);
    if (whole.bias) piece.bias = whole.bias + out;
    if (whole.residual) piece.residual = behind(whole.residual, out, product.y);
    piece.y = const_cast<std::byte*>(behind(whole.y, out, product.y));
    product.range(piece, 0, count);
  }
}

void run(const KernelCall& call, const CodedProduct& product) {
  HR_CHECK(threads() <= product.threads, "scratch for {} threads, a team of {}", product.threads, threads());
  const int64_t each = decoded_row_bytes(product.plan.ins, product.x) * kDecodedRows;
  each_pass(call, product.plan, call.scratch.data() + product.threads * each, [&](const PassRows& rows) {
    share_columns(call, kDecodedRows, [&](size_t i, int64_t begin, int64_t end, int thread) {
      const RowProduct part = row_product(call, product.plan, rows, i);
      const CodedMatrix weight(call.inputs[1 + i].data, product.storage, part.outs * part.ins);
      if (product.direct) return product.direct(part, weight, begin, end);
      run_decoded(part, product, weight, begin, end, call.scratch.data() + thread * each);
    });
  });
}

}  // namespace

KernelOffer make_coded_rows(const KernelSpec& spec, const RowsPlan& plan, const DeviceFacts& facts) {
  const Storage& storage = spec.inputs[LinearInputs::weight].storage;
  constexpr int64_t kWidest = 16, kPair = 32;  // lanes; codes of 4 bits
  if (!facts.capabilities.has(kAvx2)) return {nullptr, "the machine has no AVX2"};
  if (plan.count > 8 && !plan.any_count) return {nullptr, "more than eight rows"};
  if (!stored_alike(spec)) return {nullptr, kStoredApart};
  if (!plan.out_in) return {nullptr, "rows of the weight are not dot products"};
  if (plan.ins % storage.block != 0 || storage.block % (storage.payload_bits == 4 ? kPair : kWidest) != 0)
    return {nullptr, "blocks do not fill rows and vectors"};
  CodedProduct product{plan, storage, spec.inputs[LinearInputs::left].dtype, spec.outputs[0].dtype, facts.threads};
  const int64_t needed = coded_rows_bytes(plan.ins, product.x, facts.threads);
  if (needed > spec.scratch_bytes)
    return {nullptr, fmt::format("needs {} bytes of scratch, {} are booked", needed, spec.scratch_bytes)};
  product.decode = coded_tile_decoder(product.x, facts.capabilities);
  const RowTypes types{product.x, product.x, product.y};
  product.range = dot_range(types, facts.capabilities);
  product.plan.arranged = rows_to_arrange(types, plan, facts, spec.scratch_bytes - needed);
  product.direct = coded_dot_range(storage, types, plan.count, plan.ins, facts.capabilities);
  return {kernel_of([product](const KernelCall& call) { run(call, product); }), {}};
}

}  // namespace headroom
