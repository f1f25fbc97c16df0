#include "tokenizer/bpe.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "tokenizer/byte_symbols.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

// Up to this many symbols are merged by scanning all pairs each time.
constexpr size_t kFewSymbols = 24;
// Longer words are cut where no merge can cross.
constexpr size_t kShortWord = 24;

}  // namespace

bool Bpe::takes_bytes(const Component& model) { return !model.flag("byte_fallback", false); }

Bpe::Bpe(const Component& model, const TokenizerJson& file, bool bytes)
    : vocabulary_(file.vocabulary), merges_(file.merges), bytes_(bytes) {
  if (model.has("dropout") && !(model.value()["dropout"].is_number() && model.value()["dropout"].get<double>() == 0))
    throw Error(ErrorKind::format, fmt::format("{}.dropout: random merges are not supported", model.place()),
                "set \"dropout\" to null in the tokenizer.json");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (model.has(key) && !model.text(key).empty())
      throw Error(ErrorKind::format, fmt::format("{}.{} is not supported", model.place(), key),
                  "use a byte-level or byte-fallback tokenizer");
  fuse_unknown_ = model.flag("fuse_unk", false);
  ignore_merges_ = model.flag("ignore_merges", false);
  byte_fallback_ = model.flag("byte_fallback", false);
  if (model.has("unk_token")) {
    const int32_t id = vocabulary_.find(model.text("unk_token"));
    if (id == TokenVocabulary::kNone) model.member("unk_token").refuse("is not in model.vocab");
    unknown_id_ = static_cast<uint32_t>(id);
  }
  std::string symbol;
  for (char32_t c = 0; c < 256; ++c) {
    symbol.clear();
    append_utf8(bytes_ ? kByteSymbols[c] : c, symbol);
    const int32_t id = bytes_ || c < 0x80 ? vocabulary_.find(symbol) : TokenVocabulary::kNone;
    first_ids_[c] = static_cast<uint32_t>(id);
  }
  read_fallback();
  find_joints();
}

void Bpe::read_fallback() {
  fallback_.fill(kNone);
  if (!byte_fallback_) return;
  all_fallback_ = true;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const int32_t id = vocabulary_.find(fmt::format("<0x{:02X}>", byte));
    fallback_[byte] = static_cast<uint32_t>(id);
    all_fallback_ = all_fallback_ && id != TokenVocabulary::kNone;
  }
}

// The proof of TokenJoints requires that each symbol stands for the characters that spell it. That is not so if merges
// use the unknown token or the tokens of byte fallback.
void Bpe::find_joints() {
  bool spelled = true;
  for (const TokenMerge& merge : merges_.slots()) {
    if (merge.rank == TokenMerges::kFree) continue;
    for (const uint32_t operand : {merge.left, merge.right}) {
      if (operand == unknown_id_) spelled = false;
      if (byte_fallback_ && std::find(fallback_.begin(), fallback_.end(), operand) != fallback_.end()) spelled = false;
    }
    joints_.add_token(vocabulary_.token(merge.merged));
  }
  joints_.seal();
  if (!spelled) joints_.give_up();
}

bool Bpe::allows_cut(const Boundary& boundary) const {
  // With ignore_merges a whole word may be a token that merges would not make.
  return !ignore_merges_ && separates(boundary.left, boundary.right);
}

// Whether a word that is not itself a token can be encoded in two parts.
bool Bpe::separates(char32_t left, char32_t right) const {
  if (joints_.may_join(left, right)) return false;
  // An unknown character may be fused with the one before it; one that is in the vocabulary or falls back to bytes is
  // not.
  if (all_fallback_) return true;
  std::string character;
  append_utf8(right, character);
  return vocabulary_.find(character) != TokenVocabulary::kNone;
}

// The end of the part of a long word that begins at `begin`: the next place to cut, or the end of the word.
size_t Bpe::part_end(std::string_view word, size_t begin) const {
  if (bytes_) {
    for (size_t at = begin + 1; at < word.size(); ++at) {
      const char32_t left = kByteSymbols[static_cast<unsigned char>(word[at - 1])];
      const auto right_byte = static_cast<unsigned char>(word[at]);
      if (!joints_.may_join(left, kByteSymbols[right_byte]) && first_ids_[right_byte] != kNone) return at;
    }
    return word.size();
  }
  Utf8Char left = decode_utf8(word, begin);
  for (size_t at = begin + left.bytes; at < word.size();) {
    const Utf8Char right = decode_utf8(word, at);
    if (separates(left.code, right.code)) return at;
    at += right.bytes;
    left = right;
  }
  return word.size();
}

void Bpe::encode(TokenModelWord whole, double&, TokenizerWorkspace& workspace, std::vector<int32_t>& ids) const {
  const std::string_view word = whole.text;
  if (ignore_merges_ && from_whole_word(word, workspace, ids)) return;
  if (word.size() <= kShortWord) {
    encode_part(word, workspace, ids);
    return;
  }
  for (size_t begin = 0; begin < word.size();) {
    const size_t end = part_end(word, begin);
    encode_part(word.substr(begin, end - begin), workspace, ids);
    begin = end;
  }
}

bool Bpe::from_whole_word(std::string_view word, TokenizerWorkspace& workspace, std::vector<int32_t>& ids) const {
  if (bytes_) {
    workspace.spelled_.clear();
    append_byte_symbols(word, workspace.spelled_);
    word = workspace.spelled_;
  }
  const int32_t id = vocabulary_.find(word);
  if (id == TokenVocabulary::kNone) return false;
  ids.push_back(id);
  return true;
}

void Bpe::encode_part(std::string_view part, TokenizerWorkspace& workspace, std::vector<int32_t>& ids) const {
  if (const WordCache::Entry* known = workspace.cache_.find(part)) {
    ids.insert(ids.end(), known->ids.begin(), known->ids.begin() + known->id_count);
    return;
  }
  std::vector<uint32_t>& symbols = workspace.ids_;
  symbols.clear();
  symbols.reserve(part.size());
  to_symbols(part, symbols);
  if (symbols.size() <= kFewSymbols)
    merge_few(symbols);
  else
    merge_many(workspace);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
  workspace.cache_.put(part, symbols, 0);
  workspace.trim();
}

// Unknown characters that are read but not yet written: tokens of byte fallback may overtake them, as in HF tokenizers.
struct Bpe::Unknown {
  bool pending = false;
};

void Bpe::to_symbols(std::string_view part, std::vector<uint32_t>& ids) const {
  Unknown unknown;
  const auto flush = [&] {
    if (unknown.pending) ids.push_back(unknown_id_);
    unknown.pending = false;
  };
  for (size_t at = 0; at < part.size();) {
    const auto byte = static_cast<unsigned char>(part[at]);
    const size_t length = bytes_ || byte < 0x80 ? 1 : decode_utf8(part, at).bytes;
    const std::string_view character = part.substr(at, length);
    at += length;
    const uint32_t id = length == 1 ? first_ids_[byte] : static_cast<uint32_t>(vocabulary_.find(character));
    if (id == kNone) {
      add_unknown(character, unknown, ids);
      continue;
    }
    flush();
    ids.push_back(id);
  }
  flush();
}

// A character that the vocabulary lacks: its bytes if each has a token, else the unknown token, else nothing.
void Bpe::add_unknown(std::string_view character, Unknown& unknown, std::vector<uint32_t>& ids) const {
  const auto fallback = [&](char c) { return fallback_[static_cast<unsigned char>(c)]; };
  const bool has_bytes =
      byte_fallback_ && std::all_of(character.begin(), character.end(), [&](char c) { return fallback(c) != kNone; });
  if (has_bytes) {
    for (const char c : character) ids.push_back(fallback(c));
  } else if (unknown_id_ != kNone) {
    if (unknown.pending && !fuse_unknown_) ids.push_back(unknown_id_);
    unknown.pending = true;
  }
}

void Bpe::merge_few(std::vector<uint32_t>& ids) const {
  if (ids.size() < 2) return;
  std::array<const TokenMerge*, kFewSymbols> merges;  // of ids[i] and ids[i + 1]
  size_t pairs = ids.size() - 1;
  for (size_t i = 0; i < pairs; ++i) merges[i] = merges_.find(ids[i], ids[i + 1]);
  for (;;) {
    size_t best = pairs;
    for (size_t i = 0; i < pairs; ++i)
      if (merges[i] != nullptr && (best == pairs || merges[i]->rank < merges[best]->rank)) best = i;
    if (best == pairs) break;
    ids[best] = merges[best]->merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    std::copy(merges.begin() + best + 1, merges.begin() + pairs, merges.begin() + best);
    --pairs;
    if (best > 0) merges[best - 1] = merges_.find(ids[best - 1], ids[best]);
    if (best < pairs) merges[best] = merges_.find(ids[best], ids[best + 1]);
  }
}

// A linked list of symbols and a heap of pairs that have a merge; pairs that have changed are skipped.
void Bpe::merge_many(TokenizerWorkspace& workspace) const {
  constexpr uint32_t kEnd = UINT32_MAX;
  constexpr uint32_t kGone = UINT32_MAX - 1;  // `next` of a symbol merged into its neighbour
  auto& symbols = workspace.symbols_;
  auto& queue = workspace.queue_;
  const auto count = static_cast<uint32_t>(workspace.ids_.size());
  symbols.clear();
  symbols.reserve(count);
  queue.clear();
  queue.reserve(size_t{2} * count);  // each merge removes one pair and adds at most two
  for (uint32_t i = 0; i < count; ++i)
    symbols.push_back({workspace.ids_[i], i == 0 ? kEnd : i - 1, i + 1 == count ? kEnd : i + 1});
  const auto merge_at = [&](uint32_t place) {
    const uint32_t next = symbols[place].next;
    return next >= kGone ? nullptr : merges_.find(symbols[place].id, symbols[next].id);
  };
  const auto later = std::greater<uint64_t>();
  for (uint32_t i = 0; i + 1 < count; ++i)
    if (const TokenMerge* merge = merge_at(i)) queue.push_back(uint64_t{merge->rank} << 32 | i);
  std::make_heap(queue.begin(), queue.end(), later);
  const auto offer = [&](uint32_t place) {
    const TokenMerge* merge = merge_at(place);
    if (merge == nullptr) return;
    queue.push_back(uint64_t{merge->rank} << 32 | place);
    std::push_heap(queue.begin(), queue.end(), later);
  };
  while (!queue.empty()) {
    const uint64_t top = queue.front();
    std::pop_heap(queue.begin(), queue.end(), later);
    queue.pop_back();
    const auto place = static_cast<uint32_t>(top);
    const TokenMerge* merge = merge_at(place);
    if (merge == nullptr || merge->rank != top >> 32) continue;
    TokenizerWorkspace::Symbol& symbol = symbols[place];
    TokenizerWorkspace::Symbol& joined = symbols[symbol.next];
    symbol.id = merge->merged;
    symbol.next = joined.next;
    joined.next = kGone;
    if (symbol.next != kEnd) symbols[symbol.next].previous = place;
    if (symbol.previous != kEnd) offer(symbol.previous);
    offer(place);
  }
  workspace.ids_.clear();
  for (uint32_t i = 0; i != kEnd; i = symbols[i].next) workspace.ids_.push_back(symbols[i].id);
}

}  // namespace headroom
