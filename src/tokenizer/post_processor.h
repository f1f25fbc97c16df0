// The post-processor of a tokenizer.json: the special tokens put around a text, or around and between two.
// TemplateProcessing, RobertaProcessing, BertProcessing, ByteLevel, Sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tokenizer/component.h"

namespace headroom {

// Two texts as one sequence: prefix, the first, middle, the second, suffix; tokens of type 0, and then of type 1.
struct PairTemplate {
  std::vector<int32_t> prefix, middle, suffix;
  int64_t specials_of_type_0 = 0;
  bool first_of_type_0 = true, second_of_type_0 = false;

  // Tokens of type 0 in the sequence of texts of so many tokens.
  int64_t type_0(int64_t first, int64_t second) const {
    return specials_of_type_0 + (first_of_type_0 ? first : 0) + (second_of_type_0 ? second : 0);
  }
};

// The ids around a text.
struct PostProcessor {
  std::vector<int32_t> prefix;
  std::vector<int32_t> suffix;
  // Absent where the template of pairs is none, puts the second text first, or its types do not ascend from 0 to 1.
  std::optional<PairTemplate> pair = PairTemplate{};

  // Throws Error(format) naming the place.
  static PostProcessor read(const Component& component);
};

}  // namespace headroom
