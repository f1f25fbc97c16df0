// The normalizer Precompiled: the table of replacements that SentencePiece compiles into its models.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/normalizer.h"

namespace headroom {

// Replaces grapheme clusters and characters by a table. As in HF tokenizers, the shortest key that begins a cluster of
// at most five bytes replaces the whole cluster; otherwise the characters are looked up one by one.
//
// The table is a double-array trie of the keys' bytes (units of 32 bits: label and leaf bits, offset to the children;
// Yata's darts-clone); its leaves hold the offset of the replacement in a list of NUL-terminated texts.
class PrecompiledStep final : public NormalizerStep {
 public:
  // Reads "precompiled_charsmap". Throws Error(format) naming the place if it is not such a table.
  explicit PrecompiledStep(const Component& component);

  std::string apply(std::string text, bool) const override;
  bool allows_cut(const Boundary& boundary, BoundaryChoices& after) const override;
  int64_t growth() const override { return growth_; }
  int64_t memory_bytes() const override {
    return static_cast<int64_t>(units_.capacity() * sizeof(uint32_t) + texts_.capacity());
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  void check(const Component& place);
  // The index of a node's children, from the index of its unit; the unit that a byte leads to from there, or kNone.
  uint32_t children_of(uint32_t unit_at) const;
  uint32_t child(uint32_t children, unsigned char byte) const;
  std::string_view text_at(uint32_t offset) const;
  // The replacement of the shortest key that begins `text`.
  std::optional<std::string_view> look_up(std::string_view text) const;
  // Whether a key is longer than `text` and begins with it.
  bool has_longer_key(std::string_view text) const;

  std::vector<uint32_t> units_;
  std::string texts_;
  int64_t growth_ = 1;
  bool has_prepend_keys_ = false;  // keys that begin with a character that joins the next one
};

}  // namespace headroom
