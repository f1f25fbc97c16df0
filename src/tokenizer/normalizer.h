// The normalizer of a tokenizer.json: NFC, NFD, NFKC, NFKD, Prepend, Replace, Sequence.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/boundary.h"
#include "tokenizer/component.h"
#include "tokenizer/normal_form.h"
#include "tokenizer/pattern.h"

namespace headroom {

// Immutable; may be used from several threads.
class Normalizer {
 public:
  // A normalizer that changes nothing.
  Normalizer() = default;
  // Throws Error(format) naming the place.
  static Normalizer read(const Component& component);

  // The normalized form of valid UTF-8. `continued` says that the text continues a piece cut elsewhere: nothing is
  // prepended.
  std::string apply(std::string_view text, bool continued) const;
  bool changes_nothing() const { return steps_.empty(); }

  // Whether cutting at the boundary changes nothing; replaces its characters by their normalized ones.
  bool allows_cut(Boundary& boundary) const;

  // At most growth() bytes come out per byte that goes in, plus prepended().
  int64_t growth() const;
  int64_t prepended() const;
  int64_t memory_bytes() const;

 private:
  struct Step {
    std::optional<NormalFormConverter> form;  // a normal form, or
    std::optional<Pattern> pattern;           // Replace by pattern, or
    std::string replaced;                     // Replace of this text, or, when all are empty,
    std::string content;                      // Prepend of this; what Replace puts in
  };
  void add(const Component& component, int depth);
  static bool allows_cut(const Step& step, Boundary& boundary);

  std::vector<Step> steps_;
};

// Appends `text` to `out` with every match of a literal or a pattern replaced by `content`.
void replace_literal(std::string_view text, std::string_view replaced, std::string_view content, std::string& out);
void replace_pattern(std::string_view text, const Pattern& pattern, std::string_view content, std::string& out);

}  // namespace headroom
