// The post-processor of a tokenizer.json, for single texts: the special tokens put in front and behind.
// TemplateProcessing, RobertaProcessing, BertProcessing, ByteLevel, Sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/component.h"

namespace headroom {

// The ids around a text.
struct PostProcessor {
  std::vector<int32_t> prefix;
  std::vector<int32_t> suffix;

  // Throws Error(format) naming the place.
  static PostProcessor read(const Component& component);
};

}  // namespace headroom
