#include "ops/attention/exact_products.h"

#include "base/error.h"
#include "ops/attention/bf16_products.h"
#include "ops/cpu/amx_split.h"

#ifdef HEADROOM_HAS_AMX

namespace headroom {
namespace {

constexpr __mmask16 kAll = 0xffff;

template <void (*pack)(const amx::SplitBlock&, std::byte*), bool kRowsAreStrips>
void pack_blocks(const ExactSource& source, const ExactBlocks& to) {
  for (int64_t row = 0; row < source.rows; row += 32)
    for (int64_t column = 0; column < source.columns; column += 32) {
      const amx::SplitBlock block{source.from + row * source.stride + column, source.stride, 32, {kAll, kAll}};
      pack(block, kRowsAreStrips ? to.from(row / 32, column / 32).at : to.from(column / 32, row / 32).at);
    }
}

HEADROOM_AMX inline void multiply_block(const ExactProduct& p, int64_t row, int64_t column) {
  float* const c = p.c + row * p.c_row + column;
  amx::load_sums(p.add ? c : nullptr, p.c_row);
  const std::byte* a = p.a.from(row / 32, 0).at;
  const std::byte* b = p.b.from(column / 32, 0).at;
  for (int64_t step = 0; step < p.depth; step += 32, a += p.a.step, b += p.b.step) amx::multiply_split_step<3>(a, b);
  amx::store_sums(c, p.c_row);
}

HEADROOM_AMX void multiply_blocks(const ExactProduct& product) {
  amx::order_memory();
  for (int64_t column = 0; column < product.columns; column += 32)
    for (int64_t row = 0; row < product.rows; row += 32) multiply_block(product, row, column);
}

}  // namespace

void pack_exact_left(const ExactSource& source, const ExactBlocks& to) {
  pack_blocks<amx::split_rows<3>, true>(source, to);
}
void pack_exact_left_turned(const ExactSource& source, const ExactBlocks& to) {
  pack_blocks<amx::split_columns<3>, false>(source, to);
}
void pack_exact_right(const ExactSource& source, const ExactBlocks& to) {
  pack_blocks<amx::split_pairs<3>, false>(source, to);
}
void pack_exact_right_turned(const ExactSource& source, const ExactBlocks& to) {
  pack_blocks<amx::split_column_pairs<3>, true>(source, to);
}

void multiply_exact(const ExactProduct& product) { multiply_blocks(product); }
void enter_exact() { Bf16Amx::enter(); }
void leave_exact() { Bf16Amx::leave(); }
bool exact_products_usable() { return Bf16Amx::usable(); }

}  // namespace headroom

#else

namespace headroom {
namespace {
void refuse() { HR_CHECK(false, "the machine has no AMX"); }
}  // namespace

void pack_exact_left(const ExactSource&, const ExactBlocks&) { refuse(); }
void pack_exact_left_turned(const ExactSource&, const ExactBlocks&) { refuse(); }
void pack_exact_right(const ExactSource&, const ExactBlocks&) { refuse(); }
void pack_exact_right_turned(const ExactSource&, const ExactBlocks&) { refuse(); }
void multiply_exact(const ExactProduct&) { refuse(); }
void enter_exact() { refuse(); }
void leave_exact() {}
bool exact_products_usable() { return false; }
}  // namespace headroom

#endif
