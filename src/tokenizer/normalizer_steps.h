// The steps of normalizers.
#pragma once

#include <optional>
#include <string>

#include "tokenizer/normal_form.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pattern.h"

namespace headroom {

// A Unicode normal form.
class FormStep final : public NormalizerStep {
 public:
  explicit FormStep(NormalForm form) : converter_(form) {}
  std::string apply(std::string text, bool) const override { return converter_.convert(text); }
  bool allows_cut(const Boundary& boundary, BoundaryChoices& after) const override;
  int64_t growth() const override;
  int64_t memory_bytes() const override { return converter_.memory_bytes(); }

 private:
  NormalFormConverter converter_;
};

// Prepends a text to texts that are not empty.
class PrependStep final : public NormalizerStep {
 public:
  explicit PrependStep(std::string content) : content_(std::move(content)) {}
  std::string apply(std::string text, bool continued) const override;
  bool allows_cut(const Boundary& boundary, BoundaryChoices& after) const override;
  int64_t prepended() const override { return static_cast<int64_t>(content_.size()); }

 private:
  std::string content_;
};

// Replaces every match of a pattern, or every occurrence of a text.
class ReplaceStep final : public NormalizerStep {
 public:
  ReplaceStep(Pattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  ReplaceStep(std::string replaced, std::string content)
      : replaced_(std::move(replaced)), content_(std::move(content)) {}
  std::string apply(std::string text, bool) const override;
  bool drops_front(std::string_view text) const override;
  bool allows_cut(const Boundary& boundary, BoundaryChoices& after) const override;
  int64_t growth() const override;
  int64_t memory_bytes() const override { return pattern_ ? pattern_->memory_bytes() : 0; }

 private:
  bool choose(char32_t code, bool left, std::string& choices) const;

  std::optional<Pattern> pattern_;
  std::string replaced_;  // if there is no pattern
  std::string content_;
};

// Strips white space at the ends.
class StripEndsStep final : public NormalizerStep {
 public:
  StripEndsStep(bool left, bool right) : left_(left), right_(right) {}
  std::string apply(std::string text, bool continued) const override;
  bool drops_front(std::string_view text) const override;
  bool allows_cut(const Boundary& boundary, BoundaryChoices& after) const override;

 private:
  bool left_;
  bool right_;
};

// Maps each character separately.
class CharacterStep final : public NormalizerStep {
 public:
  // Appends what a character becomes, perhaps nothing; at most `growth` bytes per byte.
  using Map = void (*)(char32_t code, std::string& out);
  explicit CharacterStep(Map map, int64_t growth = 1) : map_(map), growth_(growth) {}
  std::string apply(std::string text, bool) const override;
  bool drops_front(std::string_view text) const override;
  bool allows_cut(const Boundary& boundary, BoundaryChoices& after) const override;
  int64_t growth() const override { return growth_; }

 private:
  Map map_;
  int64_t growth_;
};

// How these normalizers map a character: BertNormalizer's clean_text, handle_chinese_chars and strip_accents (after
// NFD); Lowercase, StripAccents, Nmt.
void clean_character(char32_t code, std::string& out);
void space_chinese_character(char32_t code, std::string& out);
void strip_bert_accent(char32_t code, std::string& out);
void lowercase_character(char32_t code, std::string& out);
void strip_accent(char32_t code, std::string& out);
void nmt_character(char32_t code, std::string& out);

}  // namespace headroom
