// Products with a weight in blocks of codes: few rows of x are multiplied with codes decoded in registers; for more, a
// few rows of the weight at a time are decoded, then multiplied with all rows of x.
#include "ops/linear/cpu_coded_rows.h"

#include "ops/linear/coded_dot.h"
#include "ops/linear/coded_tile.h"
#include "ops/linear/decoded_rows.h"

namespace headroom {
namespace {

CodedMatrix matrix_of(const KernelCall& call, const Storage& storage, int64_t ins, size_t i) {
  return {call.inputs[1 + i].data, storage, call.outputs[i].dims.back() * ins};
}

KernelOffer decoding(const Storage& storage, const RowsPlan& plan, const DecodedRows& decoded,
                     CodedTileDecoder decode) {
  return {kernel_of([=](const KernelCall& call) {
            decoded.run(call, plan, [&](size_t i, int64_t row, int64_t rows, void* to) {
              decode(matrix_of(call, storage, plan.ins, i), row * plan.ins, rows * plan.ins, to);
            });
          }),
          {}};
}

// `begin`: bytes of scratch that are left free.
KernelOffer direct(const Storage& storage, const RowsPlan& plan, int64_t begin, CodedRange range) {
  return {kernel_of([=](const KernelCall& call) {
            each_part(call, plan, call.scratch.data() + begin, plan.tiles ? 2 * kTileLanes : kDecodedRows,
                      [&](size_t i, const RowProduct& product, int64_t first, int64_t end, int) {
                        range(product, matrix_of(call, storage, plan.ins, i), first, end);
                      });
          }),
          {}};
}

}  // namespace

KernelOffer make_coded_rows(const KernelSpec& spec, RowsPlan plan, const DeviceFacts& facts) {
  const Storage& storage = spec.inputs[LinearInputs::weight].storage;
  constexpr int64_t kWidest = 16, kPair = 32;  // lanes; codes of 4 bits
  if (!facts.capabilities.has(kAvx2)) return {nullptr, "the machine has no AVX2"};
  if (plan.count > 8 && !plan.any_count) return {nullptr, "more than eight rows"};
  if (!stored_alike(spec)) return {nullptr, kStoredApart};
  if (!plan.out_in) return {nullptr, "rows of the weight are not dot products"};
  if (plan.ins % storage.block != 0 || storage.block % (storage.payload_bits == 4 ? kPair : kWidest) != 0)
    return {nullptr, "blocks do not fill rows and vectors"};
  if (const int64_t needed = rows_scratch(spec.call(), facts); needed > spec.scratch_bytes)
    return {nullptr, fmt::format("needs {} bytes of scratch, {} are booked", needed, spec.scratch_bytes)};
  const DType x = spec.inputs[LinearInputs::left].dtype, y = spec.outputs[0].dtype;
  const RowTypes types{x, x, y};
  plan.wide = widens_rows(x, facts.capabilities);
  plan.tiles = multiplied_on_tiles(types, plan, facts);
  const DecodedRows decoded(plan, plan.wide ? DType::f32 : x, y, facts);
  plan.arranged = rows_to_arrange(types, plan, facts, spec.scratch_bytes - decoded.bytes());
  const CodedRange range = plan.tiles ? coded_tile_range(storage, y, plan.count, plan.ins)
                                      : coded_dot_range(storage, types, plan.count, plan.ins, facts.capabilities);
  if (range) return direct(storage, plan, decoded.bytes(), range);
  return decoding(storage, plan, decoded, coded_tile_decoder(storage, x, plan.wide, facts.capabilities));
}

}  // namespace headroom
