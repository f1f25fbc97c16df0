// The score of a piece of a Unigram model, as HF tokenizers reads it.
#pragma once

#include <string_view>

namespace headroom {

// The number that a JSON number (sign, digits, fraction, exponent) stands for, read as serde_json does without its
// feature float_roundtrip: the leading digits that fit 64 bits, times or divided by a power of ten. It may be one unit
// in the last place away from the nearest number, which decides between segmentations of otherwise equal score.
double parse_token_score(std::string_view number);

}  // namespace headroom
