#include "generate/stop_texts.h"

#include <algorithm>

#include "base/error.h"

namespace headroom {

StopTexts::StopTexts(std::vector<std::string> texts) : texts_(std::move(texts)) {
  for (const std::string& text : texts_) HR_CHECK(!text.empty(), "an empty text stops nothing");
}

std::string StopTexts::push(std::string_view piece) {
  if (stopped()) return {};
  held_ += piece;
  size_t stop = held_.size(), beginning = held_.size();
  for (const std::string& text : texts_) {
    if (const size_t at = held_.find(text); at < stop) stop = at, stopped_by_ = &text;
    for (size_t length = std::min(text.size() - 1, held_.size()); length > 0; --length)
      if (held_.ends_with(std::string_view(text).substr(0, length)))
        beginning = std::min(beginning, held_.size() - length);
  }
  const size_t certain = stopped() ? stop : beginning;
  std::string out = held_.substr(0, certain);
  held_.erase(0, stopped() ? held_.size() : certain);
  return out;
}

std::string StopTexts::finish() {
  std::string out;
  out.swap(held_);
  return out;
}

}  // namespace headroom
