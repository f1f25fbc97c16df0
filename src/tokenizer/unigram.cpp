#include "tokenizer/unigram.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

using Best = TokenizerWorkspace::Best;

constexpr double kUnknownPenalty = 10;
constexpr uint32_t kUnreached = UINT32_MAX;

}  // namespace

Unigram::Unigram(const Component& model, const TokenizerJson& file)
    : vocabulary_(file.vocabulary), scores_(file.scores), trie_(file.vocabulary, model) {
  if (model.has("unk_id")) {
    unknown_id_ = static_cast<uint32_t>(model.number("unk_id"));
    if (unknown_id_ >= scores_.size())
      model.member("unk_id").refuse(fmt::format("{} where model.vocab has {} tokens", unknown_id_, scores_.size()));
  }
  byte_fallback_ = model.flag("byte_fallback", false);
  for (unsigned byte = 0; byte < 256; ++byte)
    fallback_[byte] = static_cast<uint32_t>(vocabulary_.find(fmt::format("<0x{:02X}>", byte)));
  double lowest = std::numeric_limits<double>::infinity();
  for (const double score : scores_) lowest = std::min(lowest, score);
  unknown_score_ = lowest - kUnknownPenalty;
  for (uint32_t id = 0; id < vocabulary_.id_limit(); ++id) joints_.add_token(vocabulary_.token(id));
  joints_.seal();
}

void Unigram::encode(TokenModelWord word, double& score, TokenizerWorkspace& workspace,
                     std::vector<int32_t>& ids) const {
  const WordCache::Entry* known = word.continued ? nullptr : workspace.cache_.find(word.text);
  if (known != nullptr) {
    score = known->score;
    ids.insert(ids.end(), known->ids.begin(), known->ids.begin() + known->id_count);
    return;
  }
  std::vector<Best>& best = workspace.best_;
  find_best(word.text, word.continued ? score : 0, best);
  score = best.back().score;
  // Where the pieces begin, from the last one on; a run of unknown pieces counts as one.
  std::vector<uint32_t>& pieces = workspace.ids_;
  pieces.clear();
  const auto is_unknown = [&](size_t end) { return unknown_id_ != kNone && best[end].id == unknown_id_; };
  for (size_t end = word.text.size(); end > 0; end = best[end].begin) {
    const size_t begin = best[end].begin;
    if (begin == 0 || !is_unknown(end) || !is_unknown(begin)) pieces.push_back(static_cast<uint32_t>(begin));
  }
  const size_t before = ids.size();
  while (!pieces.empty()) {
    const size_t begin = pieces.back();
    pieces.pop_back();
    const size_t end = pieces.empty() ? word.text.size() : pieces.back();
    if (is_unknown(end))
      append_unknown(word.text.substr(begin, end - begin), ids);
    else
      ids.push_back(static_cast<int32_t>(best[end].id));
  }
  pieces.assign(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end());
  if (!word.continued) workspace.cache_.put(word.text, pieces, score);
  workspace.trim();
}

void Unigram::find_best(std::string_view word, double score, std::vector<Best>& best) const {
  best.assign(word.size() + 1, Best{0, kUnreached, 0});
  best[0].score = score;
  for (size_t begin = 0; begin < word.size(); begin += decode_utf8(word, begin).bytes) offer_pieces(word, begin, best);
}

// Extends the best segmentation of the text before `begin` by every piece that begins there.
void Unigram::offer_pieces(std::string_view word, size_t begin, std::vector<Best>& best) const {
  const double score = best[begin].score;
  const auto offer = [&](size_t end, double sum, uint32_t id) {
    if (best[end].begin == kUnreached || sum > best[end].score) best[end] = {sum, static_cast<uint32_t>(begin), id};
  };
  const size_t character_end = begin + decode_utf8(word, begin).bytes;
  bool known = false;  // the character is a piece itself
  uint32_t node = PieceTrie::kRoot;
  for (size_t at = begin; at < word.size();) {
    node = trie_.child(node, word[at++]);
    if (node == kNone) break;
    const uint32_t id = trie_.id(node);
    if (id == kNone) continue;
    offer(at, score + scores_[id], id);
    known = known || at == character_end;
  }
  if (known) return;
  const double sum = score + unknown_score_;
  const bool better = best[character_end].begin == kUnreached || sum > best[character_end].score;
  if (better && unknown_id_ == kNone)
    throw Error(ErrorKind::format,
                fmt::format("no token stands for the character U+{:04X}, and the tokenizer names no unknown token",
                            static_cast<uint32_t>(decode_utf8(word, begin).code)),
                "take the character out of the text, or set model.unk_id in the tokenizer.json");
  offer(character_end, sum, unknown_id_);
}

void Unigram::append_unknown(std::string_view run, std::vector<int32_t>& ids) const {
  const int32_t id = vocabulary_.find(run);
  if (id != TokenVocabulary::kNone) {
    ids.push_back(id);
    return;
  }
  const auto fallback = [&](char c) { return fallback_[static_cast<unsigned char>(c)]; };
  const bool has_bytes =
      byte_fallback_ && std::all_of(run.begin(), run.end(), [&](char c) { return fallback(c) != kNone; });
  if (!has_bytes) {
    ids.push_back(static_cast<int32_t>(unknown_id_));
    return;
  }
  for (const char c : run) ids.push_back(static_cast<int32_t>(fallback(c)));
}

// Scores are summed from the beginning of a word, so a cut must be known to be within one.
bool Unigram::allows_cut(const Boundary& boundary) const {
  return boundary.within && !joints_.may_join(boundary.left, boundary.right) && is_always_known(boundary.right);
}

// Whether a piece that begins with the character is never the unknown token, which might be fused with one before it.
bool Unigram::is_always_known(char32_t code) const {
  std::string character;
  append_utf8(code, character);
  if (vocabulary_.find(character) == TokenVocabulary::kNone) return false;
  return unknown_id_ == kNone || !vocabulary_.token(unknown_id_).starts_with(character);
}

}  // namespace headroom
