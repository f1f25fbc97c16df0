#include "weights/fresh_weights.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/counter_random.h"
#include "base/threads.h"
#include "weights/stored_floats.h"
#include "weights/weights.h"

namespace headroom {
namespace {

// Box-Muller on two counter-based uniforms.
float normal_at(uint64_t key, uint64_t index) {
  const double u = unit_interval(mix64(key ^ (2 * index))) + 0x1p-54;
  const double v = unit_interval(mix64(key ^ (2 * index + 1)));
  return static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v));
}

}  // namespace

void draw_weight(const WeightInfo& weight, const ModelSpec& spec, uint64_t seed, int64_t first, std::span<float> into) {
  if (weight.init != WeightInit::normal) {
    std::fill(into.begin(), into.end(), weight.init == WeightInit::ones ? 1.0f : 0.0f);
    return;
  }
  const uint64_t key = mix64(seed) ^ hash_text(weight.name);
  const int64_t size = static_cast<int64_t>(into.size());
  parallel_for(size, 1024, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      into[static_cast<size_t>(i)] =
          static_cast<float>(spec.initializer_range) * normal_at(key, static_cast<uint64_t>(first + i));
  });
  if (weight.zero_row < 0) return;
  const int64_t width = weight.shape.back();
  const int64_t row = weight.zero_row * width - first;
  std::fill(into.begin() + std::clamp<int64_t>(row, 0, size), into.begin() + std::clamp<int64_t>(row + width, 0, size),
            0.0f);
}

std::vector<WeightInfo> missing_head(const ModelSpec& spec, const SafetensorsSet& files) {
  std::vector<WeightInfo> missing;
  for (const WeightInfo& weight : model_weights(spec))
    if (weight.head && stored_weight_name(spec, files, weight.name).empty()) missing.push_back(weight);
  return missing;
}

void draw_weights(Executor& executor, const ModelSpec& spec, std::span<const WeightInfo> weights, uint64_t seed) {
  constexpr int64_t kChunk = 4096;
  float values[kChunk];
  for (const WeightInfo& weight : weights) {
    const TensorView view = executor.tensor(weight.name);
    const StoredType stored = stored_as(view.dtype);
    executor.write(view, [&](int64_t first, std::span<std::byte> piece) {
      const int64_t total = static_cast<int64_t>(piece.size()) / dtype_bytes(view.dtype);
      if (view.dtype == DType::f32)
        return draw_weight(weight, spec, seed, first,
                           {reinterpret_cast<float*>(piece.data()), static_cast<size_t>(total)});
      for (int64_t at = 0; at < total; at += kChunk) {
        const int64_t count = std::min(kChunk, total - at);
        draw_weight(weight, spec, seed, first + at, {values, static_cast<size_t>(count)});
        narrow_floats({values, static_cast<size_t>(count)}, stored, piece.data() + at * dtype_bytes(view.dtype));
      }
    });
  }
}

}  // namespace headroom
