#include "tokenizer/word_piece.h"

#include <algorithm>

#include "base/error.h"

namespace headroom {
namespace {

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

WordPiece::WordPiece(const Component& model, const TokenizerJson& file) : trie_(file.vocabulary, model) {
  const std::string unknown = model.has("unk_token") ? model.text("unk_token") : "[UNK]";
  const int32_t id = file.vocabulary.find(unknown);
  if (id == TokenVocabulary::kNone)
    model.refuse(fmt::format("unk_token \"{}\" is not in model.vocab", std::string_view(unknown).substr(0, 60)));
  unknown_id_ = static_cast<uint32_t>(id);
  const bool named = model.has("continuing_subword_prefix");
  continuing_ = trie_.descend(PieceTrie::kRoot, named ? model.text("continuing_subword_prefix") : "##");
  max_characters_ = static_cast<size_t>(model.number("max_input_chars_per_word", 100));
}

void WordPiece::encode(TokenModelWord word, double&, TokenizerWorkspace& workspace, std::vector<int32_t>& ids) const {
  if (const WordCache::Entry* known = workspace.cache_.find(word.text)) {
    ids.insert(ids.end(), known->ids.begin(), known->ids.begin() + known->id_count);
    return;
  }
  std::vector<uint32_t>& pieces = workspace.ids_;
  pieces.clear();
  if (count_characters(word.text) > max_characters_)
    pieces.push_back(unknown_id_);
  else
    spell(word.text, pieces);
  ids.insert(ids.end(), pieces.begin(), pieces.end());
  workspace.cache_.put(word.text, pieces, 0);
  workspace.trim();
}

void WordPiece::spell(std::string_view word, std::vector<uint32_t>& pieces) const {
  for (size_t begin = 0; begin < word.size();) {
    uint32_t node = begin == 0 ? PieceTrie::kRoot : continuing_;
    uint32_t longest = PieceTrie::kNone;
    size_t end = begin;
    for (size_t at = begin; at < word.size() && node != PieceTrie::kNone; ++at) {
      node = trie_.child(node, word[at]);
      if (node == PieceTrie::kNone || trie_.id(node) == PieceTrie::kNone) continue;
      longest = trie_.id(node);
      end = at + 1;
    }
    if (longest == PieceTrie::kNone) {
      pieces.assign(1, unknown_id_);
      return;
    }
    pieces.push_back(longest);
    begin = end;
  }
}

}  // namespace headroom
