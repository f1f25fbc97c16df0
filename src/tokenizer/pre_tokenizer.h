// The pre-tokenizer of a tokenizer.json: splits a normalized text into words, which the model sees one by one.
// ByteLevel, Split, Metaspace, Digits, Punctuation, Whitespace, WhitespaceSplit, BertPreTokenizer, CharDelimiterSplit,
// Sequence.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/boundary.h"
#include "tokenizer/component.h"

namespace headroom {

// A text to split, or a piece of it.
struct PreTokenizerInput {
  std::string_view text;
  bool opens;  // it begins where the text to encode begins
  // For how many further steps it is joined to the text before a cut; kWithinWord: it continues a word.
  size_t continued = 0;
  static constexpr size_t kWithinWord = SIZE_MAX;

  PreTokenizerInput part(size_t begin, size_t end) const {
    return {text.substr(begin, end - begin), opens && begin == 0, begin == 0 ? continued : 0};
  }
};

// Receives pieces in order.
class WordSink {
 public:
  virtual void word(PreTokenizerInput piece) = 0;

 protected:
  ~WordSink() = default;
};

// One step. Immutable and thread-safe.
class PreTokenizerStep {
 public:
  virtual ~PreTokenizerStep() = default;
  // Passes the pieces of the input to `next`, in order; none is empty.
  virtual void split(PreTokenizerInput input, WordSink& next) const = 0;
  // Whether cutting at the boundary changes no piece if the right side is marked as continued. Sets boundary.split if a
  // piece always ends there, clears boundary.within unless one never ends there, and replaces the boundary's characters
  // by those in the pieces.
  virtual bool allows_cut(Boundary& boundary) const = 0;
  // The output has at most this many bytes per byte of input.
  virtual int64_t growth() const { return 1; }
  virtual int64_t memory_bytes() const { return 0; }
};

// All steps in order.
class PreTokenizer {
 public:
  // A pre-tokenizer that keeps the text whole.
  PreTokenizer() = default;
  // Throws Error(format) naming the place.
  static PreTokenizer read(const Component& component);

  void split(PreTokenizerInput input, WordSink& sink) const;
  // Like a step's; also sets boundary.joined_steps.
  bool allows_cut(Boundary& boundary) const;

  // Whether words are bytes: the last step is ByteLevel, and spelling bytes with its symbols is left to the model.
  bool gives_bytes() const { return gives_bytes_; }
  // Puts that step back: words are then in byte symbols.
  void spell_bytes();

  int64_t growth() const;
  int64_t memory_bytes() const;

 private:
  void add(const Component& component, int depth);

  std::vector<std::unique_ptr<PreTokenizerStep>> steps_;
  bool gives_bytes_ = false;
};

}  // namespace headroom
