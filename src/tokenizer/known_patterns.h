// Hand-written scanners for the patterns that most byte-level tokenizers share.
#pragma once

#include <cstddef>
#include <string_view>

namespace headroom {

// The scanner of a pattern.
enum class KnownPattern {
  none,
  gpt2,    // also the pattern of the pre-tokenizer ByteLevel
  qwen2,   // cl100k with single digits
  llama3,  // cl100k with up to three digits
};

// The patterns. GPT-2's is also that of the pre-tokenizer ByteLevel.
extern const std::string_view kGpt2Pattern, kQwen2Pattern, kLlama3Pattern;

// The scanner for a pattern text, `none` if it has none.
KnownPattern recognise_pattern(std::string_view text);

// The end of the match that begins at byte `at` of valid UTF-8 (at < text.size()). These patterns match everywhere.
size_t scan_known_pattern(KnownPattern pattern, std::string_view text, size_t at);

}  // namespace headroom
