// The rows and how they become batches.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace headroom {

struct BatchOptions {
  std::vector<std::filesystem::path> train;
  int64_t max_seq_length = 0;  // 0 = min(model, 512)
  int64_t global_batch_size = 8;
  int64_t micro_batch_size = 0;   // 0 = the planner's choice
  double mlm_probability = 0.15;  // for masked models: share of the tokens that are targets
  bool shuffle = true;

  bool operator==(const BatchOptions&) const = default;
};

// Checks ranges and words. Throws Error(usage) naming option, value and remedy.
void check_options(const BatchOptions& options);

}  // namespace headroom
