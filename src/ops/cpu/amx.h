// What kernels on AMX tiles share; nothing where HEADROOM_HAS_AMX stays undefined.
#pragma once

#if defined(__x86_64__) && defined(__linux__)
#define HEADROOM_HAS_AMX 1
// g++ 12 takes the deliberately undefined operands inside its AVX-512 intrinsics for uses of uninitialised values.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

// Marks a function that uses the instructions, for machines on which they were found at run time.
#define HEADROOM_AMX __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,prfchw")))
// The same for pieces of a few instructions, whose vectors stay in registers.
#define HEADROOM_AMX_INLINE HEADROOM_AMX __attribute__((always_inline))

// The same two with products of bytes.
#define HEADROOM_AMX_INT8 \
  __attribute__((target("amx-tile,amx-int8,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,prfchw")))
#define HEADROOM_AMX_INT8_INLINE HEADROOM_AMX_INT8 __attribute__((always_inline))

namespace headroom::amx {

inline constexpr int64_t kTileBytes = 1024;            // 16 rows of 64 bytes
inline constexpr int64_t kStepBytes = 2 * kTileBytes;  // 32 steps of 32 rows of A or columns of B

// The layout of the LDTILECFG operand (Intel SDM, vol. 1, ch. 18).
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

constexpr TileConfig eight_full_tiles() {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    config.row_bytes[tile] = 64;
    config.rows[tile] = 16;
  }
  return config;
}

// A constant in memory: the intrinsic's operand names its first bytes only, stores to a local would be dropped.
inline constexpr TileConfig kTileConfig = eight_full_tiles();

HEADROOM_AMX inline void enter_tiles() { _tile_loadconfig(&kTileConfig); }

HEADROOM_AMX inline void leave_tiles() { _tile_release(); }

// Linux hands out the tile registers on request (arch_prctl, ARCH_REQ_XCOMP_PERM of XTILEDATA).
inline bool tiles_permitted() {
  static const bool permitted = syscall(SYS_arch_prctl, 0x1023, 18) == 0;
  return permitted;
}

// The compiler does not see which memory tile instructions read and write: what was written before is in memory behind
// this, what is read later is read again.
inline void order_memory() { __asm__ volatile("" : : : "memory"); }

// Tiles 0-3 hold the sums of a product of 32 rows and columns, `row` floats from row to row; without `from` zeros.
HEADROOM_AMX inline void load_sums(const float* from, int64_t row) {
  if (from) {
    _tile_loadd(0, from, row * 4);
    _tile_loadd(1, from + 16, row * 4);
    _tile_loadd(2, from + 16 * row, row * 4);
    _tile_loadd(3, from + 16 * row + 16, row * 4);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
}

HEADROOM_AMX inline void store_sums(float* to, int64_t row) {
  _tile_stored(0, to, row * 4);
  _tile_stored(1, to + 16, row * 4);
  _tile_stored(2, to + 16 * row, row * 4);
  _tile_stored(3, to + 16 * row + 16, row * 4);
}

// Which operand of a product the first-level cache keeps: the other one passes it by.
enum class Keep { a, b };

// 32 steps of the depth onto the sums in tiles 0-3: 32 rows of A, `a_stride` bytes apart, and a step of packed B.
template <Keep kKept = Keep::b>
HEADROOM_AMX inline void multiply_step(const std::byte* a, int64_t a_stride, const std::byte* b) {
  if constexpr (kKept == Keep::a) {
    _tile_stream_loadd(6, b, 64);
    _tile_stream_loadd(7, b + kTileBytes, 64);
  } else {
    _tile_loadd(6, b, 64);
    _tile_loadd(7, b + kTileBytes, 64);
  }
  _tile_loadd(4, a, a_stride);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_loadd(5, a + 16 * a_stride, a_stride);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

}  // namespace headroom::amx

#endif
