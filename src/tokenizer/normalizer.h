// The normalizer of a tokenizer.json: NFC, NFD, NFKC, NFKD, Prepend, Replace, Strip, StripAccents, Lowercase, Nmt,
// BertNormalizer, Precompiled, Sequence.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/boundary.h"
#include "tokenizer/component.h"
#include "tokenizer/pattern.h"

namespace headroom {

// One step. Immutable and thread-safe.
class NormalizerStep {
 public:
  virtual ~NormalizerStep() = default;
  // The normalized form of valid UTF-8. `continued`: the text continues one that was cut elsewhere.
  virtual std::string apply(std::string text, bool continued) const = 0;
  // Whether the first character of a text (not empty) is removed or becomes part of something else.
  virtual bool drops_front(std::string_view) const { return false; }
  // Whether cutting at the boundary changes nothing if the right side is `continued`, and no character next to it is
  // removed; adds what the two characters may become to `after`.
  virtual bool allows_cut(const Boundary& boundary, BoundaryChoices& after) const = 0;
  // The output has at most growth() bytes per byte of input, plus prepended().
  virtual int64_t growth() const { return 1; }
  virtual int64_t prepended() const { return 0; }
  virtual int64_t memory_bytes() const { return 0; }
};

// All steps in order.
class Normalizer {
 public:
  // A normalizer that changes nothing.
  Normalizer() = default;
  // Throws Error(format) naming the place.
  static Normalizer read(const Component& component);

  // The normalized form of valid UTF-8. `continued`: the text continues a piece cut elsewhere, so nothing is prepended
  // or stripped in front. `drops_front` (may be null) receives whether the beginning of the text was removed.
  std::string apply(std::string_view text, bool continued, bool* drops_front = nullptr) const;
  bool changes_nothing() const { return steps_.empty(); }

  // Whether cutting at the boundaries changes nothing; replaces them by what they may become.
  bool allows_cut(BoundaryChoices& boundaries) const;

  // The output has at most growth() bytes per byte of input, plus prepended().
  int64_t growth() const;
  int64_t prepended() const;
  int64_t memory_bytes() const;

 private:
  void add(const Component& component, int depth);
  void add_bert(const Component& component);
  void push(std::unique_ptr<const NormalizerStep> step);

  std::vector<std::unique_ptr<const NormalizerStep>> steps_;
};

// Appends `text` to `out` with each match of a literal or pattern replaced by `content`.
void replace_literal(std::string_view text, std::string_view replaced, std::string_view content, std::string& out);
void replace_pattern(std::string_view text, const Pattern& pattern, std::string_view content, std::string& out);

}  // namespace headroom
