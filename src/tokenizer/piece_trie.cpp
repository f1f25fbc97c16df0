#include "tokenizer/piece_trie.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace headroom {
namespace {

constexpr size_t kMaxTokenBytes = 4096;

// The tokens below a node: a range of indices into the sorted ids.
struct Range {
  uint32_t begin;
  uint32_t end;
};

std::vector<uint32_t> sorted_ids(const TokenVocabulary& vocabulary) {
  std::vector<uint32_t> ids;
  ids.reserve(vocabulary.size());
  for (uint32_t id = 0; id < vocabulary.id_limit(); ++id)
    if (vocabulary.contains(id)) ids.push_back(id);
  std::sort(ids.begin(), ids.end(), [&](uint32_t a, uint32_t b) {
    const int order = vocabulary.token(a).compare(vocabulary.token(b));
    return order != 0 ? order < 0 : a < b;
  });
  return ids;
}

}  // namespace

PieceTrie::PieceTrie(const TokenVocabulary& vocabulary, const Component& model) {
  const std::vector<uint32_t> ids = sorted_ids(vocabulary);
  for (const uint32_t id : ids)
    if (vocabulary.token(id).size() > kMaxTokenBytes)
      model.refuse(fmt::format("vocab: the token of id {} has {} bytes, more than {}", id, vocabulary.token(id).size(),
                               kMaxTokenBytes));
  labels_.push_back(0);
  std::vector<Range> level = {{0, static_cast<uint32_t>(ids.size())}}, next;
  for (size_t depth = 0; !level.empty(); ++depth) {
    next.clear();
    for (const Range node : level) {
      uint32_t at = node.begin;
      uint32_t ending = kNone;
      for (; at < node.end && vocabulary.token(ids[at]).size() == depth; ++at) ending = ids[at];
      ids_.push_back(ending);
      children_.push_back(static_cast<uint32_t>(labels_.size()));
      while (at < node.end) {
        const uint32_t begin = at;
        const char label = vocabulary.token(ids[begin])[depth];
        while (at < node.end && vocabulary.token(ids[at])[depth] == label) ++at;
        labels_.push_back(label);
        next.push_back({begin, at});
      }
    }
    level.swap(next);
  }
  children_.push_back(static_cast<uint32_t>(labels_.size()));
  children_.shrink_to_fit();
  labels_.shrink_to_fit();
  ids_.shrink_to_fit();
}

uint32_t PieceTrie::child(uint32_t node, char byte) const {
  const uint32_t begin = children_[node], end = children_[node + 1];
  if (begin == end) return kNone;
  const char* labels = labels_.data();
  const void* found = std::memchr(labels + begin, static_cast<unsigned char>(byte), end - begin);
  return found == nullptr ? kNone : static_cast<uint32_t>(static_cast<const char*>(found) - labels);
}

uint32_t PieceTrie::descend(uint32_t node, std::string_view text) const {
  for (size_t at = 0; at < text.size() && node != kNone; ++at) node = child(node, text[at]);
  return node;
}

int64_t PieceTrie::memory_bytes() const {
  return static_cast<int64_t>(children_.capacity() * sizeof(uint32_t) + labels_.capacity() +
                              ids_.capacity() * sizeof(uint32_t));
}

}  // namespace headroom
