// Extended grapheme clusters (UAX #29, Unicode 17.0): what readers perceive as one character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headroom {

// Grapheme_Cluster_Break refined by Indic_Conjunct_Break, in the order of the generated tables.
enum class GraphemeClass : uint8_t {
  other,
  control,
  extend,
  non_joiner,  // U+200C: an extend that ends a conjunct
  linker,      // an extend that links consonants
  joiner,      // U+200D
  spacing_mark,
  prepend,
  pictographic,
  consonant,  // that linkers link
  hangul_lead,
  hangul_vowel,
  hangul_trail,
  hangul_open,    // a syllable without a trail
  hangul_closed,  // one with
};

GraphemeClass grapheme_class(char32_t code);

// The end of the cluster that begins at byte `at` of valid UTF-8 (at < text.size()). Pairs of regional indicators count
// as two clusters.
size_t grapheme_end(std::string_view text, size_t at);

// Whether a cluster ends between these neighbours in every context.
bool graphemes_always_break(char32_t left, char32_t right);

}  // namespace headroom
