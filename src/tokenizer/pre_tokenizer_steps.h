// The steps of pre-tokenizers.
#pragma once

#include <string>

#include "tokenizer/pattern.h"
#include "tokenizer/pre_tokenizer.h"

namespace headroom {

// What happens to the matches of a Split.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// Reads the member "behavior"; `otherwise` if it is missing.
SplitBehavior read_split_behavior(const Component& component, SplitBehavior otherwise);

// Splits at the matches of a pattern (Split, and ByteLevel with use_regex).
class SplitStep final : public PreTokenizerStep {
 public:
  SplitStep(Pattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  void split(PreTokenizerInput input, WordSink& next) const override;
  bool allows_cut(Boundary& boundary) const override;
  int64_t memory_bytes() const override { return pattern_.memory_bytes(); }

 private:
  Pattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

// Splits at characters of a class (Digits, Punctuation, WhitespaceSplit, BertPreTokenizer).
class ClassStep final : public PreTokenizerStep {
 public:
  using Test = bool (*)(char32_t);
  ClassStep(Test test, SplitBehavior behavior) : test_(test), behavior_(behavior) {}
  void split(PreTokenizerInput input, WordSink& next) const override;
  bool allows_cut(Boundary& boundary) const override;

 private:
  Test test_;
  SplitBehavior behavior_;
};

// Splits into runs of word characters and runs of others, and drops white space (Whitespace).
class WordRunsStep final : public PreTokenizerStep {
 public:
  void split(PreTokenizerInput input, WordSink& next) const override;
  bool allows_cut(Boundary& boundary) const override;
};

// Prepends a space to a piece that does not begin with one (ByteLevel with add_prefix_space).
class PrefixSpaceStep final : public PreTokenizerStep {
 public:
  void split(PreTokenizerInput input, WordSink& next) const override;
  bool allows_cut(Boundary& boundary) const override { return boundary.right == ' '; }
  int64_t growth() const override { return 2; }
};

// Spells bytes with their symbols (ByteLevel).
class ByteSymbolsStep final : public PreTokenizerStep {
 public:
  void split(PreTokenizerInput input, WordSink& next) const override;
  bool allows_cut(Boundary& boundary) const override;
  int64_t growth() const override { return 2; }
};

// Replaces spaces, prepends the replacement, splits before each (Metaspace).
class MetaspaceStep final : public PreTokenizerStep {
 public:
  enum class Prepend { always, first, never };
  MetaspaceStep(char32_t replacement, Prepend prepend, bool split);
  void split(PreTokenizerInput input, WordSink& next) const override;
  bool allows_cut(Boundary& boundary) const override;
  int64_t growth() const override { return 2 * static_cast<int64_t>(replacement_text_.size()); }

 private:
  char32_t replacement_;
  std::string replacement_text_;
  Prepend prepend_;
  bool split_;
};

// Reads a Metaspace of a pre-tokenizer or decoder: "prepend_scheme", or the older "add_prefix_space".
MetaspaceStep::Prepend read_metaspace_prepend(const Component& component);

}  // namespace headroom
