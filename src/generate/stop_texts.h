// Texts that end generation, even across token boundaries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Passes streamed text on up to the first of `texts`, which may be empty. Text that may be the beginning of one is held
// back, so no part of one is ever passed on.
class StopTexts {
 public:
  // None of the texts may be empty.
  explicit StopTexts(std::vector<std::string> texts);
  StopTexts(const StopTexts&) = delete;
  StopTexts& operator=(const StopTexts&) = delete;

  // The text before a stop that is certain after this piece, perhaps empty; empty once stopped().
  std::string push(std::string_view piece);
  // The held-back text, which turned out not to begin a stop: there is no more text.
  std::string finish();
  bool stopped() const { return stopped_by_ != nullptr; }
  // The text that ended it; null until then.
  const std::string* stopped_by() const { return stopped_by_; }

 private:
  std::vector<std::string> texts_;
  std::string held_;
  const std::string* stopped_by_ = nullptr;  // of texts_
};

}  // namespace headroom
