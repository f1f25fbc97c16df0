// The generated Unicode tables (tools/generate_unicode_tables.py, tools/generate_normalizer_tables.py).
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom::unicode {

// Code points first..last share `value`.
struct Run {
  char32_t first;
  char32_t last;
  uint8_t value;
};

// A canonical decomposition into `first` and, unless 0, `second`; `composes`: whether NFC composes it again.
struct CanonicalPair {
  char32_t code;
  char32_t first;
  char32_t second;
  uint8_t composes;
};

// code + i decomposes to target + i for i < count.
struct CompatibilityRun {
  char32_t code;
  uint32_t count;
  char32_t target;
};

// `code` decomposes fully to compatibility_pool[offset .. offset + length).
struct CompatibilityString {
  char32_t code;
  uint32_t offset;
  uint32_t length;
};

// Block of 128 code points -> its index in category_nibbles (8 words of 16 four-bit categories); below U+20000.
extern const uint8_t category_block[];
extern const size_t category_block_size;
extern const uint64_t category_nibbles[];
extern const size_t category_nibbles_size;
// Categories from U+20000 on.
extern const Run category_runs[];
extern const size_t category_runs_size;
// Code points that the pre-tokenizer Punctuation classifies differently from their category.
extern const Run punctuation_differs[];
extern const size_t punctuation_differs_size;

// Code points first, first + step, ..., last; adding `offset` gives their lower case.
struct CaseRun {
  char32_t first;
  char32_t last;
  int32_t offset;
  uint32_t step;
};
extern const CaseRun lowercase_runs[];
extern const size_t lowercase_runs_size;
// Marks, nonspacing marks and control characters, as certain normalizers define them; grapheme_classes holds the values
// of GraphemeClass except for ASCII and Hangul syllables.
extern const Run accent_marks[];
extern const size_t accent_marks_size;
extern const Run bert_accents[];
extern const size_t bert_accents_size;
extern const Run bert_controls[];
extern const size_t bert_controls_size;
extern const Run grapheme_classes[];
extern const size_t grapheme_classes_size;

extern const CanonicalPair canonical_pairs[];
extern const size_t canonical_pairs_size;
extern const Run combining_classes[];
extern const size_t combining_classes_size;

extern const CompatibilityRun compatibility_runs[];
extern const size_t compatibility_runs_size;
extern const CompatibilityString compatibility_strings[];
extern const size_t compatibility_strings_size;
extern const char32_t compatibility_pool[];
extern const size_t compatibility_pool_size;

}  // namespace headroom::unicode
