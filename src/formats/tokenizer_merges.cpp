#include "formats/tokenizer_merges.h"

namespace headroom {

TokenMerges::TokenMerges(const std::vector<TokenMerge>& merges)
    : slots_(merges.empty() ? 0 : merges.size() + merges.size() / 3 + 1, TokenMerge{0, 0, kFree, 0}) {
  for (const TokenMerge& merge : merges) {
    size_t slot = first_slot(merge.left, merge.right);
    while (slots_[slot].rank != kFree && (slots_[slot].left != merge.left || slots_[slot].right != merge.right))
      slot = slot + 1 == slots_.size() ? 0 : slot + 1;
    if (slots_[slot].rank == kFree) ++size_;
    slots_[slot] = merge;
  }
}

}  // namespace headroom
