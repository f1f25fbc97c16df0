// Products of 8-bit codes on AMX tiles: a 32 x 32 result in four tiles, 64 steps of the depth at a time. A strip of A
// has tiles [16 rows][64 codes], one of B tiles [16 quads of codes][16 columns].
#include "ops/cpu/amx.h"
#include "ops/cpu/byte_strips.h"

#ifdef HEADROOM_HAS_AMX

namespace headroom {
namespace {

using amx::kTileBytes;

using byte_strips::kLanes, byte_strips::kStep;

HEADROOM_AMX_INT8 void multiply(const Int8Tile& given) {
  const Int8Tile tile = given;  // a copy, which stores cannot change
  amx::order_memory();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const std::byte *a = tile.a, *b = tile.b;
  for (int64_t step = 0; step < tile.depth; step += kStep, a += 2 * kTileBytes, b += 2 * kTileBytes) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(7, b + kTileBytes, 64);
    _tile_dpbssd(1, 4, 7);
    _tile_loadd(5, a + kTileBytes, 64);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  constexpr int64_t kRow = 2 * kLanes;
  _tile_stored(0, tile.sums, kRow * 4);
  _tile_stored(1, tile.sums + kLanes, kRow * 4);
  _tile_stored(2, tile.sums + kLanes * kRow, kRow * 4);
  _tile_stored(3, tile.sums + kLanes * kRow + kLanes, kRow * 4);
  amx::order_memory();
  byte_strips::finish(tile);
}

}  // namespace

MatmulOffer make_amx_int8_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked) {
  if (!facts.capabilities.has(kAmx) || !amx::tiles_permitted()) return {nullptr, "the machine has no AMX"};
  return make_int8_product(
      spec,
      {kInt8Tiles, byte_strips::pack_rows(), byte_strips::pack_quads(), multiply, amx::enter_tiles, amx::leave_tiles},
      facts, booked);
}

}  // namespace headroom

#else

namespace headroom {
MatmulOffer make_amx_int8_matmul(const MatmulSpec&, const DeviceFacts&, int64_t) {
  return {nullptr, "the machine has no AMX"};
}
}  // namespace headroom

#endif
