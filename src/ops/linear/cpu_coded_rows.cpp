// Products with a weight in blocks of codes: by the few rows that meet them in registers, else a few rows of the weight
// at a time are decoded, then meet all rows of x.
#include "ops/linear/cpu_coded_rows.h"

#include "base/error.h"
#include "base/threads.h"
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
  int64_t threads = 1;  // that the scratch is for
  CodedTileDecoder decode = nullptr;
  ColumnRange range = nullptr;  // of the decoded rows
  CodedRange direct = nullptr;  // instead of both
};

const std::byte* behind(const void* data, int64_t elements, DType dtype) {
  return static_cast<const std::byte*>(data) + elements * dtype_bytes(dtype);
}

// Columns begin .. end of y.
void run_columns(const KernelCall& call, const CodedProduct& product, int64_t begin, int64_t end, void* decoded) {
  const RowsPlan& plan = product.plan;
  const int64_t outs = call.outputs[0].dims.back();
  const CodedMatrix weight(call.inputs[1].data, product.storage, outs * plan.ins);
  RowProduct piece{call.inputs[0].data, decoded};
  piece.rows = plan.count, piece.outs = outs, piece.ins = plan.ins;
  if (product.direct) {
    if (plan.bias != 0) piece.bias = call.inputs[plan.bias].as<float>();
    if (plan.residual != 0) piece.residual = call.inputs[plan.residual].data;
    piece.y = call.outputs[0].data;
    return product.direct(piece, weight, begin, end);
  }
  // One row: what is decoded stays in the first-level cache.
  const int64_t most = plan.count == 1 ? kDecodedRows / 3 : kDecodedRows;
  for (int64_t out = begin; out < end; out += most) {
    const int64_t count = std::min(most, end - out);
    product.decode(weight, out * plan.ins, count * plan.ins, decoded);
    if (plan.bias != 0) piece.bias = call.inputs[plan.bias].as<float>() + out;
    if (plan.residual != 0) piece.residual = behind(call.inputs[plan.residual].data, out, product.y);
    piece.y = const_cast<std::byte*>(behind(call.outputs[0].data, out, product.y));
    product.range(piece, 0, count);
  }
}

void run(const KernelCall& call, const CodedProduct& product) {
  HR_CHECK(threads() <= product.threads, "scratch for {} threads, a team of {}", product.threads, threads());
  const int64_t each = decoded_row_bytes(product.plan.ins, product.x) * kDecodedRows;
  parallel_for(call.outputs[0].dims.back(), kDecodedRows, [&](int64_t begin, int64_t end, int thread) {
    run_columns(call, product, begin, end, call.scratch.data() + thread * each);
  });
}

}  // namespace

KernelOffer make_coded_rows(const KernelSpec& spec, const RowsPlan& plan, const DeviceFacts& facts) {
  const Storage& storage = spec.inputs[1].storage;
  constexpr int64_t kWidest = 16, kPair = 32;  // lanes; codes of 4 bits
  if (!facts.capabilities.has(kAvx2)) return {nullptr, "the machine has no AVX2"};
  if (plan.count > 8 && !plan.any_count) return {nullptr, "more than eight rows"};
  if (!plan.out_in) return {nullptr, "rows of the weight are not dot products"};
  if (plan.ins % storage.block != 0 || storage.block % (storage.payload_bits == 4 ? kPair : kWidest) != 0)
    return {nullptr, "blocks do not fill rows and vectors"};
  CodedProduct product{plan, storage, spec.inputs[0].dtype, spec.outputs[0].dtype, facts.threads};
  const int64_t needed = coded_rows_bytes(plan.ins, product.x, facts.threads);
  if (needed > spec.scratch_bytes)
    return {nullptr, fmt::format("needs {} bytes of scratch, {} are booked", needed, spec.scratch_bytes)};
  product.decode = coded_tile_decoder(product.x, facts.capabilities);
  const RowTypes types{product.x, product.x, product.y};
  product.range = dot_range(types, facts.capabilities);
  product.direct = coded_dot_range(storage, types, plan.count, plan.ins, facts.capabilities);
  return {kernel_of([product](const KernelCall& call) { run(call, product); }), {}};
}

}  // namespace headroom
