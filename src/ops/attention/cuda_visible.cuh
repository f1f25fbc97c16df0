// Which keys a query sees, and the softmax's input: AttentionShape on the device.
#pragma once

#include "ops/attention/cuda_kernels.h"
#include "ops/cuda/device_language.cuh"

namespace headroom::cuda {

constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;
HR_DEVICE float minus_infinity() { return __uint_as_float(0xff800000u); }

// 2^x with an error of at most two units in the last place; 0 if the result is below the normal numbers.
HR_DEVICE float power_of_two(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}

HR_DEVICE int smaller(int a, int b) { return a < b ? a : b; }
HR_DEVICE int larger(int a, int b) { return a > b ? a : b; }

// Visibility in one batch row: a query sees the keys [begin(position), end(position)). Neither decreases as the
// position grows.
class VisibleKeys {
 public:
  HR_DEVICE VisibleKeys(const AttentionSizes& sizes, int row)
      : keys_(sizes.keys), window_(sizes.window), causal_(sizes.causal) {
    limit_ = sizes.lengths ? smaller(keys_, larger(1, sizes.lengths[row])) : keys_;
    starts_ = sizes.starts ? sizes.starts + static_cast<int64_t>(row) * sizes.queries : nullptr;
  }
  HR_DEVICE int begin(int position) const {
    const int seen = window_ > 0 ? larger(0, smaller(position - window_, keys_ - 2) + 1) : 0;
    return starts_ ? larger(seen, smaller(larger(starts_[position], 0), position)) : seen;
  }
  HR_DEVICE int end(int position) const { return causal_ ? smaller(position + 1, limit_) : limit_; }
  HR_DEVICE int limit() const { return limit_; }
  HR_DEVICE bool causal() const { return causal_; }
  // The first of the positions [from, to) whose first key is `key` or later, or `to`.
  HR_DEVICE int first_beginning_at(int key, int from, int to) const {
    if (window_ == 0 && !starts_) return to;
    while (from < to) {
      const int middle = from + (to - from) / 2;
      if (begin(middle) >= key)
        to = middle;
      else
        from = middle + 1;
    }
    return to;
  }

 private:
  int keys_, window_, limit_;
  bool causal_;
  const int32_t* starts_;
};

// The position of the first query, clamped to the cache.
HR_DEVICE int first_position(const AttentionSizes& sizes) {
  return sizes.offset ? smaller(larger(*sizes.offset, 0), sizes.keys) : 0;
}

// Turns the product of a query and a key into the softmax's input in base 2.
class Scores {
 public:
  HR_DEVICE explicit Scores(const AttentionSizes& sizes)
      : capped_(sizes.softcap > 0),
        inner_(capped_ ? sizes.scale / sizes.softcap : 1.0f),
        outer_((capped_ ? sizes.softcap : sizes.scale) * kLog2E) {}
  HR_DEVICE float of(float product) const { return outer_ * (capped_ ? tanhf(product * inner_) : product); }
  // The same; `slope` is the derivative of the natural score with respect to the scaled product.
  HR_DEVICE float of(float product, float& slope) const {
    if (!capped_) {
      slope = 1.0f;
      return outer_ * product;
    }
    const float t = tanhf(product * inner_);
    slope = 1.0f - t * t;
    return outer_ * t;
  }

 private:
  bool capped_;
  float inner_, outer_;
};

// The tile, head and batch row of a block. Blocks of one head are adjacent, the last tile first, because the last tiles
// of a causal call have the most work.
struct TilePlace {
  int part;  // index of the part of a head's columns
  int tile;
  int head;
  int row;
};
HR_DEVICE TilePlace tile_place(int tiles, int heads, int parts) {
  int64_t at = blockIdx.x;
  TilePlace place;
  place.part = static_cast<int>(at % parts);
  at /= parts;
  place.tile = tiles - 1 - static_cast<int>(at % tiles);
  at /= tiles;
  place.head = static_cast<int>(at % heads);
  place.row = static_cast<int>(at / heads);
  return place;
}

}  // namespace headroom::cuda
