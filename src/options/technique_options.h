// The options of techniques: they change how a step is computed, not its inputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "options/loss_scale_options.h"
#include "passes/lora.h"

namespace headroom {

struct TechniqueOptions {
  std::string precision = "32-true";
  std::string matmul_precision = "highest";
  std::string attention_order = "fixed";
  LossScaleOptions fp16;
  LoraOptions lora;
  std::vector<std::string> freeze;  // patterns of weights that are not trained
  bool packing = false;             // several rows in a sequence
  bool group_by_length = false;     // batches of rows of similar length
  double max_grad_norm = 1.0;       // 0 = no clipping
  std::string arithmetic = "free";
  std::vector<std::string> allow;           // kinds or techniques that the planner may also use
  std::map<std::string, std::string> pins;  // --technique: name -> on | off | value

  bool operator==(const TechniqueOptions&) const = default;
};

// The dtype in which a run keeps its weights: "float32", "bfloat16" or "float16".
std::string master_dtype(const TechniqueOptions& options);

// Checks ranges and words. Throws Error(usage) naming option, value and remedy.
void check_options(const TechniqueOptions& options);

}  // namespace headroom
