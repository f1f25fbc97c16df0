#include "grammar/token_trie.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace headroom {
namespace {

// The bytes of all tokens, one after another.
struct AllTokens {
  std::string text;
  std::vector<uint32_t> begins;  // and the end of the last

  std::string_view of(int32_t id) const {
    const uint32_t begin = begins[static_cast<size_t>(id)];
    return std::string_view(text).substr(begin, begins[static_cast<size_t>(id) + 1] - begin);
  }
};

AllTokens collect(const TokenBytes& tokens, int64_t vocab) {
  AllTokens all;
  all.begins.reserve(static_cast<size_t>(vocab) + 1);
  for (int64_t id = 0; id < vocab; ++id) {
    all.begins.push_back(static_cast<uint32_t>(all.text.size()));
    const std::string bytes = tokens.of(static_cast<int32_t>(id));
    if (bytes.size() <= TokenTrie::kLongestToken) all.text += bytes;
  }
  all.begins.push_back(static_cast<uint32_t>(all.text.size()));
  return all;
}

size_t shared_prefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())), b.begin()).first -
      a.begin());
}

}  // namespace

TokenTrie::TokenTrie(const TokenBytes& tokens, int64_t vocab) : vocab_(vocab) {
  const AllTokens all = collect(tokens, std::min(vocab, tokens.vocab_size()));
  for (size_t id = 0; id + 1 < all.begins.size(); ++id)
    if (all.begins[id + 1] > all.begins[id]) ids_.push_back(static_cast<int32_t>(id));
  ids_.shrink_to_fit();
  std::sort(ids_.begin(), ids_.end(), [&](int32_t a, int32_t b) {
    const int order = all.of(a).compare(all.of(b));
    return order != 0 ? order < 0 : a < b;
  });
  size_t nodes = 1;
  std::string_view before;
  for (const int32_t id : ids_) {
    nodes += all.of(id).size() - shared_prefix(all.of(id), before);
    before = all.of(id);
  }
  bytes_.reserve(nodes), depths_.reserve(nodes), skips_.reserve(nodes), first_ids_.reserve(nodes + 1);
  std::vector<uint32_t> path{0};  // the nodes from the root to the last one
  const auto add = [&](uint8_t byte, size_t depth, size_t first_id) {
    bytes_.push_back(byte), depths_.push_back(static_cast<uint8_t>(depth));
    skips_.push_back(0), first_ids_.push_back(static_cast<uint32_t>(first_id));
  };
  const auto close_to = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) skips_[path.back()] = size();
  };
  add(0, 0, 0);
  before = {};
  for (size_t i = 0; i < ids_.size(); ++i) {
    const std::string_view text = all.of(ids_[i]);
    const size_t alike = shared_prefix(text, before);
    close_to(alike + 1);
    for (size_t at = alike; at < text.size(); ++at) {
      path.push_back(size());
      add(static_cast<uint8_t>(text[at]), at + 1, i);
    }
    before = text;
  }
  close_to(0);
  first_ids_.push_back(static_cast<uint32_t>(ids_.size()));
}

int64_t TokenTrie::memory_bytes() const {
  return static_cast<int64_t>(bytes_.capacity() + depths_.capacity() +
                              (skips_.capacity() + first_ids_.capacity() + ids_.capacity()) * sizeof(uint32_t));
}

}  // namespace headroom
