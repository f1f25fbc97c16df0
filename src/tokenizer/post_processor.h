// The post-processor of a tokenizer.json: special tokens around a text, or around and between two. TemplateProcessing,
// RobertaProcessing, BertProcessing, ByteLevel, Sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tokenizer/component.h"

namespace headroom {

// Two texts as one sequence: prefix, first, middle, second, suffix; tokens of type 0 come before those of type 1.
struct PairTemplate {
  std::vector<int32_t> prefix, middle, suffix;
  int64_t specials_of_type_0 = 0;
  bool first_of_type_0 = true, second_of_type_0 = false;

  // The tokens of type 0 in a sequence of texts of these many tokens.
  int64_t type_0(int64_t first, int64_t second) const {
    return specials_of_type_0 + (first_of_type_0 ? first : 0) + (second_of_type_0 ? second : 0);
  }
};

// The ids around a text.
struct PostProcessor {
  std::vector<int32_t> prefix;
  std::vector<int32_t> suffix;
  // Absent if there is no template for pairs, if it puts the second text first, or if its types do not ascend from 0 to
  // 1.
  std::optional<PairTemplate> pair = PairTemplate{};

  // Throws Error(format) naming the place.
  static PostProcessor read(const Component& component);
};

}  // namespace headroom
