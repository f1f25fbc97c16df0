// The values of --precision besides 32-true, and the technique of each.
#pragma once

#include <string_view>

#include "ir/dtype.h"
#include "passes/bf16_mixed.h"
#include "passes/bf16_true.h"
#include "passes/fp16_mixed.h"
#include "passes/fp16_true.h"

namespace headroom {

struct Precision {
  std::string_view word;
  const PassInfo* technique;
  DType narrow;
  bool keeps_fp32;  // weights stay fp32 and products round them; else the weights themselves are narrow
  // f16 gradients vanish without a factor on the loss.
  bool scales_loss() const { return narrow == DType::f16; }
};

inline constexpr Precision kPrecisions[] = {{"bf16-mixed", &kBf16Mixed, DType::bf16, true},
                                            {"bf16-true", &kBf16True, DType::bf16, false},
                                            {"16-mixed", &kFp16Mixed, DType::f16, true},
                                            {"16-true", &kFp16True, DType::f16, false}};

// Null for 32-true and for unknown words.
constexpr const Precision* find_precision(std::string_view word) {
  for (const Precision& precision : kPrecisions)
    if (precision.word == word) return &precision;
  return nullptr;
}

}  // namespace headroom
