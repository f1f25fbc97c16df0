#include "doctor/messages/word_scan.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace headroom::doctor {

size_t WordScan::block_at(const std::string& word, size_t at) {
  const char bytes[4] = {0, word[at], word[at + 1], word[at + 2]};
  return block(bytes + 4);
}

WordScan::WordScan(std::vector<Word> words) {
  HR_CHECK(!words.empty() && words.size() < kEnd, "{} words", words.size());
  shortest_ = words[0].text.size();
  for (const Word& word : words) {
    HR_CHECK(word.text.size() >= kShortest, "word '{}' is too short", word.text);
    shortest_ = std::min({shortest_, word.text.size(), size_t{200}});
    std::string folded(word.text);
    for (char& byte : folded) byte = static_cast<char>(fold(byte));
    words_.push_back(std::move(folded));
    tags_.push_back(word.tag);
  }
  shift_.fill(static_cast<uint8_t>(shortest_ - 2));
  first_.fill(0);
  std::map<size_t, std::vector<uint16_t>> ends;  // block that ends a word's first shortest_ bytes -> words
  for (size_t w = 0; w < words_.size(); ++w) {
    for (size_t i = 0; i + 3 <= shortest_; ++i) {
      uint8_t& shift = shift_[block_at(words_[w], i)];
      shift = std::min(shift, static_cast<uint8_t>(shortest_ - 3 - i));
    }
    ends[block_at(words_[w], shortest_ - 3)].push_back(static_cast<uint16_t>(w));
  }
  for (const auto& [key, list] : ends) {
    first_[key] = static_cast<uint16_t>(candidates_.size());
    candidates_.insert(candidates_.end(), list.begin(), list.end());
    candidates_.push_back(kEnd);
  }
}

bool WordScan::equal(std::string_view text, size_t position, const std::string& word) const {
  if (text.size() - position < word.size()) return false;
  for (size_t i = 0; i < word.size(); ++i) {
    if (fold(text[position + i]) != static_cast<unsigned char>(word[i])) return false;
  }
  return true;
}

WordScan::Hit WordScan::next(std::string_view text, size_t from) const {
  if (text.size() < shortest_) return {};
  for (size_t start = from; start + shortest_ <= text.size();) {
    const size_t key = block(text.data() + start + shortest_);
    const uint8_t shift = shift_[key];
    if (shift != 0) {
      start += shift;
      continue;
    }
    for (const uint16_t* at = candidates_.data() + first_[key]; *at != kEnd; ++at) {
      if (equal(text, start, words_[*at])) return {start, *at, tags_[*at]};
    }
    ++start;
  }
  return {};
}

uint32_t WordScan::tags(std::string_view text) const {
  uint32_t tags = 0;
  for (Hit hit = next(text, 0); hit.position != std::string_view::npos; hit = next(text, hit.position + 1)) {
    tags |= hit.tag;
  }
  return tags;
}

}  // namespace headroom::doctor
