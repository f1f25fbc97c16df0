// The values of --precision besides 32-true.
#pragma once

#include "passes/bf16_mixed.h"
#include "passes/bf16_true.h"
#include "passes/fp16_mixed.h"
#include "passes/fp16_true.h"

namespace headroom {

inline constexpr Precision kPrecisions[] = {kBf16MixedPrecision, kBf16TruePrecision, kFp16MixedPrecision,
                                            kFp16TruePrecision};

// Null for 32-true and for unknown words.
constexpr const Precision* find_precision(std::string_view word) {
  for (const Precision& precision : kPrecisions)
    if (precision.word == word) return &precision;
  return nullptr;
}

}  // namespace headroom
