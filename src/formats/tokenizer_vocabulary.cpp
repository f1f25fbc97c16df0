#include "formats/tokenizer_vocabulary.h"

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace headroom {
namespace {

// The number of ids, gaps included, is at most four times the number of tokens plus this.
constexpr uint64_t kFreeGaps = 65536;

[[noreturn]] void refuse(const std::string& source, const std::string& problem) {
  throw Error(ErrorKind::format, fmt::format("{}: model.vocab: {}", source, problem),
              "correct or re-download the tokenizer.json");
}

}  // namespace

void TokenVocabulary::Builder::add(std::string_view token, uint32_t id) {
  HR_CHECK(id < kIdLimit && text_.size() + token.size() <= UINT32_MAX, "token id {} or text out of range", id);
  entries_.push_back({id, static_cast<uint32_t>(text_.size())});
  text_.append(token);
}

TokenVocabulary TokenVocabulary::Builder::finish(const std::string& source, Repeated repeated) && {
  TokenVocabulary result;
  result.size_ = entries_.size();
  std::vector<uint32_t> order(entries_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint32_t>(i);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return entries_[a].id < entries_[b].id; });
  const uint64_t ids = order.empty() ? 0 : uint64_t{entries_[order.back()].id} + 1;
  if (ids > 4 * uint64_t{order.size()} + kFreeGaps)
    refuse(source, fmt::format("highest id {} with only {} tokens", ids - 1, order.size()));

  const auto text_of = [&](uint32_t index) {
    const size_t end = index + 1 < entries_.size() ? entries_[index + 1].offset : text_.size();
    return std::string_view(text_).substr(entries_[index].offset, end - entries_[index].offset);
  };
  const bool in_order = std::is_sorted(order.begin(), order.end());
  if (!in_order) result.text_.reserve(text_.size());
  result.offsets_.reserve(ids + 1);
  result.present_.assign(ids, false);
  uint32_t end = 0;
  for (size_t place = 0; place < order.size(); ++place) {
    const uint32_t index = order[place];
    const uint32_t id = entries_[index].id;
    const std::string_view token = text_of(index);
    if (result.present_[id])
      refuse(source, fmt::format("tokens \"{}\" and \"{}\" share id {}", text_of(order[place - 1]), token, id));
    result.present_[id] = true;
    result.offsets_.resize(id + 1, end);
    end += static_cast<uint32_t>(token.size());
    if (!in_order) result.text_.append(token);
  }
  result.offsets_.push_back(end);
  if (in_order) {
    text_.shrink_to_fit();
    result.text_ = std::move(text_);
  }
  result.build_index(source, repeated);
  return result;
}

size_t TokenVocabulary::first_slot(std::string_view token) const {
  const uint64_t high = (std::hash<std::string_view>()(token) * 0x9E3779B97F4A7C15U) >> 32;
  return static_cast<size_t>((high * slots_.size()) >> 32);
}

void TokenVocabulary::build_index(const std::string& source, Repeated repeated) {
  slots_.assign(size_ + size_ / 2 + 1, 0);
  for (uint32_t id = 0; id < id_limit(); ++id) {
    if (!present_[id]) continue;
    const std::string_view text = token(id);
    size_t slot = first_slot(text);
    while (slots_[slot] != 0) {
      const bool same = token(slots_[slot] - 1) == text;
      if (same && repeated == Repeated::highest_id) break;
      if (same) refuse(source, fmt::format("token \"{}\" has two ids, {} and {}", text, slots_[slot] - 1, id));
      slot = slot + 1 == slots_.size() ? 0 : slot + 1;
    }
    slots_[slot] = id + 1;
  }
}

int32_t TokenVocabulary::find(std::string_view token_text) const {
  if (slots_.empty()) return kNone;
  for (size_t slot = first_slot(token_text); slots_[slot] != 0; slot = slot + 1 == slots_.size() ? 0 : slot + 1)
    if (token(slots_[slot] - 1) == token_text) return static_cast<int32_t>(slots_[slot] - 1);
  return kNone;
}

int64_t TokenVocabulary::memory_bytes() const {
  return static_cast<int64_t>(text_.capacity() + offsets_.capacity() * sizeof(uint32_t) + present_.capacity() / 8 +
                              slots_.capacity() * sizeof(uint32_t));
}

}  // namespace headroom
