// Which expert's product, and which tile of it, a block computes.
#pragma once

#include "ops/cuda/device_language.cuh"
#include "ops/cuda/reduce.cuh"
#include "ops/moe_linear/cuda_kernels.h"

namespace headroom::cuda {

// A matrix in memory: element (outer, inner) is at data + outer * stride + inner; elements from the counts on are zero.
template <typename T>
struct ExpertOperand {
  const T* data;
  int64_t stride;
  int outer;
  int inner;
};

// result[m][n] = sum over the depth, stored at `to` + m * stride + n. Steps of the depth are the inner index of an
// operand that is read along its rows, otherwise the outer one.
template <typename T>
struct ExpertTile {
  ExpertOperand<T> a, b;
  int depth;
  int rows, cols;  // the part of the tile that exists
  int64_t to, stride;
};

template <ExpertProduct kProduct>
constexpr bool kAlongDepthA = kProduct != ExpertProduct::weight_gradient;
template <ExpertProduct kProduct>
constexpr bool kAlongDepthB = kProduct == ExpertProduct::forward;

HR_DEVICE int at_most(int64_t value, int most) { return value < most ? static_cast<int>(value) : most; }

struct Least {
  HR_DEVICE int operator()(int a, int b) const { return a < b ? a : b; }
};

// An expert, its rows [begin, end), and the number of row groups of the experts before it.
struct ExpertRows {
  int expert;
  int begin, end;
  int before;
};
// The expert of the `tile`th group of `height` rows, where groups do not span experts; negative when there are fewer
// groups. Needs full warps.
HR_DEVICE ExpertRows expert_rows(const ExpertArgs& args, int tile, int height) {
  int passed = 0;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int from = 0; from < args.experts; from += kWarp) {
    const int expert = from + lane;
    const int begin = expert < args.experts ? args.offsets[expert] : 0;
    const int end = expert < args.experts ? args.offsets[expert + 1] : 0;
    const int own = (end - begin + height - 1) / height;
    int upto = own;
    for (int distance = 1; distance < kWarp; distance *= 2) {
      const int before = __shfl_up_sync(kAllLanes, upto, static_cast<unsigned>(distance));
      if (lane >= distance) upto += before;
    }
    const int found = reduce_warp(passed + upto > tile ? lane : kWarp, Least());
    const int all = __shfl_sync(kAllLanes, upto, kWarp - 1);
    const int source = found < kWarp ? found : 0;
    const int before = __shfl_sync(kAllLanes, upto - own, source);
    const int first = __shfl_sync(kAllLanes, begin, source), last = __shfl_sync(kAllLanes, end, source);
    if (found < kWarp) return {from + found, first, last, passed + before};
    passed += all;
  }
  return {-1, 0, 0, 0};
}

// The most groups of rows that any routing gives.
inline int64_t most_row_tiles(const ExpertArgs& args, int height) {
  const int64_t used = args.rows < args.experts ? args.rows : args.experts;
  return args.rows / height + used;
}

// Position of a matrix's `index`th tile when tiles are taken eight rows of tiles at a time, first down, then across, so
// that data read by concurrent blocks stays in the cache.
struct TileOrder {
  int down, across;
};
HR_DEVICE TileOrder tile_order(int index, int down, int across) {
  constexpr int kTogether = 8;
  const int first = index / (kTogether * across) * kTogether, own = index - first * across;
  const int height = at_most(down - first, kTogether);
  return {first + own % height, own / height};
}

// This block's tile of `height` times `width`; rows is 0 when there is none, or nothing to add to the result.
template <ExpertProduct kProduct, typename T>
HR_DEVICE ExpertTile<T> expert_tile(const ExpertArgs& args, int height, int width) {
  const bool forward = kProduct == ExpertProduct::forward, weight = kProduct == ExpertProduct::weight_gradient;
  const int outs = args.outs, ins = args.ins, cols = forward ? outs : ins, across = (cols + width - 1) / width;
  const T *const wide = static_cast<const T*>(args.wide), *const other = static_cast<const T*>(args.other);
  const int block = static_cast<int>(blockIdx.x);
  ExpertTile<T> tile = {};
  tile.stride = cols;
  if (weight) {
    const int down = (outs + height - 1) / height, expert = block / (down * across);
    const TileOrder at = tile_order(block - expert * (down * across), down, across);
    const int m = at.down * height, n = at.across * width;
    const int64_t first = args.offsets[expert];
    tile.depth = args.offsets[expert + 1] - args.offsets[expert];
    if (tile.depth == 0 && args.addend == args.result) return tile;
    tile.a = {wide + first * outs + m, outs, tile.depth, outs - m};
    tile.b = {other + first * ins + n, ins, tile.depth, ins - n};
    tile.rows = at_most(outs - m, height);
    tile.cols = at_most(ins - n, width);
    tile.to = (static_cast<int64_t>(expert) * outs + m) * ins + n;
    return tile;
  }
  const ExpertRows rows = expert_rows(args, block / across, height);
  if (rows.expert < 0) return tile;
  const TileOrder at = tile_order(block - rows.before * across, (rows.end - rows.begin + height - 1) / height, across);
  const int64_t first = rows.begin + at.down * height;
  const int n = at.across * width;
  tile.depth = forward ? ins : outs;
  tile.rows = at_most(rows.end - first, height);
  tile.cols = at_most(cols - n, width);
  tile.a = {wide + first * tile.depth, tile.depth, tile.rows, tile.depth};
  const T* const matrix = other + static_cast<int64_t>(rows.expert) * outs * ins;
  if (forward)
    tile.b = {matrix + static_cast<int64_t>(n) * ins, ins, tile.cols, ins};
  else
    tile.b = {matrix + n, ins, outs, ins - n};
  tile.to = first * cols + n;
  return tile;
}

#ifndef __CUDACC_RTC__
// Blocks for the most tiles of `height` times `width` that any routing gives.
inline int64_t expert_blocks(const ExpertArgs& args, int height, int width) {
  const auto tiles = [](int64_t count, int64_t size) { return (count + size - 1) / size; };
  switch (args.product) {
    case ExpertProduct::weight_gradient:
      return args.experts * tiles(args.outs, height) * tiles(args.ins, width);
    case ExpertProduct::forward:
      return most_row_tiles(args, height) * tiles(args.outs, width);
    default:
      return most_row_tiles(args, height) * tiles(args.ins, width);
  }
}
#endif

}  // namespace headroom::cuda
