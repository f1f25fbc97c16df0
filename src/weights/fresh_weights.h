// Randomly initialised weights: of fresh models, and of heads that a checkpoint lacks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/safetensors.h"
#include "models/model_spec.h"
#include "runtime/executor.h"

namespace headroom {

// Elements [first, first + into.size()) of a fresh weight: normal with the config's initializer_range, ones for norms,
// zeros for biases and padding's row. Each depends only on (seed, weight name, element); all threads of the team
// compute them.
void draw_weight(const WeightInfo& weight, const ModelSpec& spec, uint64_t seed, int64_t first, std::span<float> into);

// The weights of the model's head (WeightInfo::head) that a checkpoint lacks, in the order of the forward pass.
std::vector<WeightInfo> missing_head(const ModelSpec& spec, const SafetensorsSet& files);

// Initialises these weights in the arena (f32, bf16 or f16).
void draw_weights(Executor& executor, const ModelSpec& spec, std::span<const WeightInfo> weights, uint64_t seed);

}  // namespace headroom
