// The score of a Unigram model's piece, as HF tokenizers reads it.
#pragma once

#include <string_view>

namespace headroom {

// The value of a JSON number (sign, digits, fraction, exponent), parsed like serde_json without its feature
// float_roundtrip: the leading digits that fit 64 bits, times or divided by a power of ten. It may differ from the
// nearest double by one unit in the last place, which decides between segmentations of otherwise equal score.
double parse_token_score(std::string_view number);

}  // namespace headroom
