// Bytes of weights: plain, quantised, and of adapters.
#pragma once

#include <string>

#include "doctor/model/settings.h"

namespace headroom::doctor {

struct Bytes {
  double bytes = 0;
  std::string how;  // the formula with its numbers
};

// Bytes per element of a quantised matrix with its scales: "nf4" 0.5 + 4/64 (block 64, float32 scales), "nf4-dq" 0.5 +
// 1/64 + 4/16384 (scales in 8 bits, blocks of 256), "int8" 1, "gptq" and "awq" 0.5 + 2.5/128, "fp8" 1.
double quantized_width(const std::string& method);

// The elements of LitGPT's tables. It has a separate head even when the model ties it, quantised with the layers (its
// plugin replaces every torch.nn.Linear). With adapters on a quantised base it holds the token table twice, because
// main() of finetune/lora.py keeps a reference to the one that bitsandbytes' StableEmbedding replaced.
struct LitGptTables {
  double head = 0, untied = 0, stale = 0;
};
LitGptTables litgpt_tables(const ModelShape& shape, const TrainSettings& settings);

// Base weights on one device before sharding. A quantised base does not quantise embeddings, head and norms; PEFT's
// preparation for k-bit training casts those to float32.
Bytes base_weights(const ModelShape& shape, const TrainSettings& settings);

// Elements of the matrices that an adapter adds.
struct Adapters {
  double parameters = 0;
  double input_width = 0;           // input elements kept per token and layer if every target keeps its own
  double shared_input_width = 0;    // the same if targets share a common input
  double distinct_input_width = 0;  // each distinct input once, the attention's output included
  double targets = 0;               // per layer
};
Adapters lora_adapters(const ModelShape& shape, const TrainSettings& settings);

// Number of elements with gradients and optimizer states.
double trainable_parameters(const ModelShape& shape, const TrainSettings& settings);

}  // namespace headroom::doctor
