#include "ops/linear/cpu_int8_blocks.h"

#include <cmath>

#include "base/error.h"
#include "base/threads.h"
#include "ops/cast/convert.h"
#include "ops/cpu/int8_codes.h"
#include "ops/cpu/scratch.h"
#include "ops/linear/int8_block_kernels.h"

namespace headroom {
namespace {

using namespace int8_blocks;

// What is known before the addresses.
struct Int8BlocksPlan {
  RowsPlan rows;
  Storage storage;
  DType x = DType::f32, y = DType::f32;
  int64_t threads = 1;  // for which there is scratch
  Int8BlockKernels kernels;
};

Int8BlocksPlan plan_of(const KernelSpec& spec, const DeviceFacts& facts) {
  Int8BlocksPlan plan;
  plan.rows = rows_plan(spec);
  plan.storage = spec.inputs[LinearInputs::weight].storage;
  plan.x = spec.inputs[LinearInputs::left].dtype;
  plan.y = spec.outputs[0].dtype;
  plan.threads = facts.threads;
  return plan;
}

// Why the call has no such product; empty if it has.
std::string refusal_of(const KernelSpec& spec) {
  if (!multiplies_int8_blocks(spec.attrs)) return "8-bit activations are not asked for";
  return stored_alike(spec) ? "" : kStoredApart;
}

// y = sums [+ bias] [+ residual] for some columns of a row; `sums`: of these columns.
void finish_row(const RowProduct& product, DType dtype, int64_t row, int64_t column, int64_t count, float* sums) {
  if (product.bias)
    for (int64_t i = 0; i < count; ++i) sums[i] += product.bias[column + i];
  const int64_t at = row * product.outs + column;
  if (product.residual) {
    float residual[kPieceOuts];
    convert_floats(behind(product.residual, at, dtype), dtype, residual, DType::f32, count);
    for (int64_t i = 0; i < count; ++i) sums[i] += residual[i];
  }
  convert_floats(sums, DType::f32, const_cast<std::byte*>(behind(product.y, at, dtype)), dtype, count);
}

// The same for some columns of all rows.
void finish(const RowProduct& product, DType dtype, int64_t column, int64_t count, const BlockSums& from) {
  for (int64_t row = 0; row < product.rows; ++row) {
    float sums[kPieceOuts];
    for (int64_t i = 0; i < count; ++i) sums[i] = from.sums[row * from.row_step + i * from.column_step];
    finish_row(product, dtype, row, column, count, sums);
  }
}

CodedOuts outs_of(const CodedMatrix& weight, int64_t outs, int64_t ins) {
  const Storage& storage = weight.storage();
  return {weight.codes(),
          weight.scales(),
          outs,
          ins * storage.payload_bits / 8,
          ins / storage.block,
          storage.block / kCodesBlock};
}

// Columns begin .. end of one weight.
void multiply(const Int8BlocksPlan& plan, const RowProduct& product, const CodedRows& rows, const CodedOuts& weight,
              int64_t begin, int64_t end, std::byte* memory) {
  Carver scratch(memory);
  auto* const piece = scratch.take<int16_t>(Sizes::piece_bytes() / 2);
  BlockSums sums{scratch.take<float>(0), kPieceOuts, 1};
  if (!rows.few()) sums.row_step = 1, sums.column_step = align_up(rows.rows, kTileRows);
  for (int64_t column = begin; column < end; column += kPieceOuts) {
    if (rows.few())
      plan.kernels.few(rows, weight, column, sums);
    else
      plan.kernels.many(rows, weight, column, piece, sums);
    const bool together = !rows.few() && plan.kernels.finish;
    (together ? plan.kernels.finish : finish)(product, plan.y, column, std::min(kPieceOuts, end - column), sums);
  }
}

// Codes of all rows of the pass; the threads share the tiles.
void encode(const Int8BlocksPlan& plan, const void* x, const CodedRows& rows) {
  const int64_t each = rows.few() ? 1 : kTileRows;
  parallel_for((rows.rows + each - 1) / each, rows.few() ? kFewRows : 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t first = begin * each; first < std::min(rows.rows, end * each); first += each)
      plan.kernels.encode(x, plan.x, first, std::min(each, rows.rows - first), rows);
  });
}

void run(const KernelCall& call, const Int8BlocksPlan& plan) {
  HR_CHECK(threads() <= plan.threads, "scratch for {} threads, a team of {}", plan.threads, threads());
  const Sizes sizes = int8_blocks::sizes(plan.rows.count, plan.rows.ins);
  std::byte* const scratch = call.scratch.data();
  for (int64_t first = 0; first < plan.rows.count; first += sizes.rows) {
    const PassRows pass{first, std::min(sizes.rows, plan.rows.count - first)};
    const CodedRows rows{reinterpret_cast<int16_t*>(scratch), reinterpret_cast<float*>(scratch + sizes.code_bytes()),
                         pass.count, sizes.blocks()};
    encode(plan, row_product(call, plan.rows, pass, 0).x, rows);
    share_columns(call, kPieceOuts, [&](size_t i, int64_t begin, int64_t end, int thread) {
      const RowProduct product = row_product(call, plan.rows, pass, i);
      const CodedMatrix weight(call.inputs[1 + i].data, plan.storage, product.outs * product.ins);
      multiply(plan, product, rows, outs_of(weight, product.outs, product.ins), begin, end,
               scratch + sizes.row_bytes() + thread * sizes.thread_bytes());
    });
  }
}

// The sum of a row and a column.
template <typename T>
float dot(const T* x, const CodedMatrix& weight, int64_t out, int64_t ins) {
  const Storage& storage = weight.storage();
  float sum = 0;
  for (int64_t first = 0; first < ins; first += kCodesBlock) {
    int32_t largest = 0, products = 0;
    for (int64_t i = first; i < first + kCodesBlock; ++i)
      largest = std::max(largest, magnitude_bits(static_cast<float>(x[i])));
    const Int8Scale scale = int8_scale(largest);
    float codes[kCodesBlock];
    const int64_t at = out * ins + first, block = at / storage.block * storage.block;
    decode(storage.codes, storage.payload_bits, weight.codes() + code_bytes(block, storage.payload_bits), 1.0f,
           at - block, kCodesBlock, codes);
    for (int64_t i = 0; i < kCodesBlock; ++i)
      products += int8_code(static_cast<float>(x[first + i]), scale.inverse) * static_cast<int32_t>(codes[i]);
    sum = std::fma(static_cast<float>(products), scale.scale * weight.scale_of(at / storage.block), sum);
  }
  return sum;
}

void run_reference(const KernelCall& call, const Int8BlocksPlan& plan) {
  const PassRows all{0, plan.rows.count};
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const RowProduct product = row_product(call, plan.rows, all, i);
    const CodedMatrix weight(call.inputs[1 + i].data, plan.storage, product.outs * product.ins);
    parallel_for(product.outs, 8, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = 0; row < product.rows; ++row)
        for (int64_t out = begin; out < end; ++out) {
          float sum = 0;
          with_float(plan.x, [&](auto type) {
            sum = dot(static_cast<const decltype(type)*>(product.x) + row * product.ins, weight, out, product.ins);
          });
          finish_row(product, plan.y, row, out, 1, &sum);
        }
    });
  }
}

auto kernels_for(const Capabilities& capabilities) {
  if (capabilities.has(kAmx)) return int8_block_tile_kernels;
  return capabilities.has(kAvx512Bf16) ? int8_block_vnni_kernels : int8_block_kernels;
}

}  // namespace

KernelOffer make_linear_int8_blocks(const KernelSpec& spec, const DeviceFacts& facts) {
  if (std::string refusal = refusal_of(spec); !refusal.empty()) return {nullptr, std::move(refusal)};
  if (!facts.capabilities.has(kAvx2)) return {nullptr, "the machine has no AVX2"};
  Int8BlocksPlan plan = plan_of(spec, facts);
  const int64_t needed = sizes(plan.rows.count, plan.rows.ins).total_bytes(facts.threads);
  if (needed > spec.scratch_bytes)
    return {nullptr, fmt::format("needs {} bytes of scratch, {} are booked", needed, spec.scratch_bytes)};
  plan.kernels = kernels_for(facts.capabilities)(plan.storage.payload_bits);
  return {kernel_of([plan](const KernelCall& call) { run(call, plan); }), {}};
}

KernelOffer make_linear_int8_blocks_reference(const KernelSpec& spec, const DeviceFacts& facts) {
  if (std::string refusal = refusal_of(spec); !refusal.empty()) return {nullptr, std::move(refusal)};
  const Int8BlocksPlan plan = plan_of(spec, facts);
  return {kernel_of([plan](const KernelCall& call) { run_reference(call, plan); }), {}};
}

}  // namespace headroom
