// Texts that end generation, across the borders of tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Passes streamed text on up to the first of `texts`, which may be none. What may turn out to be the beginning of one
// is held back, so that no part of one is ever passed on.
class StopTexts {
 public:
  // None of the texts may be empty.
  explicit StopTexts(std::vector<std::string> texts);
  StopTexts(const StopTexts&) = delete;
  StopTexts& operator=(const StopTexts&) = delete;

  // The text before a stop that has become certain with this piece, perhaps empty; empty once stopped().
  std::string push(std::string_view piece);
  // What was still held back and is not a stop's beginning after all: there is no more text.
  std::string finish();
  bool stopped() const { return stopped_by_ != nullptr; }
  // The text that ended it; null before.
  const std::string* stopped_by() const { return stopped_by_; }

 private:
  std::vector<std::string> texts_;
  std::string held_;
  const std::string* stopped_by_ = nullptr;  // of texts_
};

}  // namespace headroom
