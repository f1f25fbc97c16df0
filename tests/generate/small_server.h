// A server of a tiny model on one thread, in few and small blocks.
#pragma once

#include <filesystem>

#include "engine/serving.h"

namespace headroom {

inline constexpr int64_t kServerMemory = int64_t{1} << 28;

inline InferenceOptions served_options(const std::filesystem::path& model, int64_t memory = kServerMemory) {
  InferenceOptions options;
  options.model = model;
  options.machine.memory = memory;
  options.machine.threads = 1;
  options.machine.profile = "cpu-avx2";
  return options;
}

inline ServingOptions small_sizes() {
  ServingOptions serving;
  serving.max_model_len = 40;
  serving.max_num_seqs = 16;
  serving.max_num_batched_tokens = 32;
  serving.block_size = 4;
  return serving;
}

}  // namespace headroom
