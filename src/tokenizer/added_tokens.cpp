#include "tokenizer/added_tokens.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

constexpr size_t kMaxContentBytes = 4096;
constexpr size_t kMaxTokens = 100'000;

char32_t last_character(std::string_view text) { return decode_utf8(text, previous_utf8(text, text.size())).code; }

bool holds(const std::vector<char32_t>& list, char32_t code) {
  return std::find(list.begin(), list.end(), code) != list.end();
}

template <typename T>
void sort_unique(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  list.shrink_to_fit();
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(const std::vector<AddedToken>& tokens, std::vector<std::string> patterns) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (patterns[i].empty()) continue;
    const AddedToken& token = tokens[i];
    entries_.push_back({std::move(patterns[i]), token.id, token.single_word, token.lstrip, token.rstrip});
  }
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.pattern < b.pattern; });
  const auto same = [](const Entry& a, const Entry& b) { return a.pattern == b.pattern; };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same), entries_.end());
  entries_.shrink_to_fit();
  for (const Entry& entry : entries_) {
    begins_[static_cast<unsigned char>(entry.pattern[0])] = true;
    note_edges(entry);
  }
  sort_unique(neighbours_);
  for (auto* edges : {&lstrip_begins_, &rstrip_ends_, &word_begins_, &word_ends_}) sort_unique(*edges);
}

void AddedTokenFinder::note_edges(const Entry& entry) {
  const char32_t first = decode_utf8(entry.pattern, 0).code, last = last_character(entry.pattern);
  char32_t before = first;
  for (size_t at = decode_utf8(entry.pattern, 0).bytes; at < entry.pattern.size();) {
    const Utf8Char next = decode_utf8(entry.pattern, at);
    neighbours_.push_back(uint64_t{before} << 32 | next.code);
    before = next.code;
    at += next.bytes;
  }
  if (entry.lstrip) lstrip_begins_.push_back(first);
  if (entry.rstrip) rstrip_ends_.push_back(last);
  if (entry.single_word) word_begins_.push_back(first);
  if (entry.single_word) word_ends_.push_back(last);
}

bool AddedTokenFinder::allows_cut(const Boundary& boundary) const {
  const char32_t left = boundary.left, right = boundary.right;
  if (std::binary_search(neighbours_.begin(), neighbours_.end(), uint64_t{left} << 32 | right)) return false;
  const bool left_space = unicode::is_space(left), right_space = unicode::is_space(right);
  if (right_space && !rstrip_ends_.empty() && (left_space || holds(rstrip_ends_, left))) return false;
  if (left_space && !lstrip_begins_.empty() && (right_space || holds(lstrip_begins_, right))) return false;
  if (holds(word_begins_, right) && unicode::is_added_token_word(left)) return false;
  return !(holds(word_ends_, left) && unicode::is_added_token_word(right));
}

// Narrows the sorted entries, byte by byte, to those that match the text.
const AddedTokenFinder::Entry* AddedTokenFinder::longest_at(std::string_view text, size_t at) const {
  const Entry* longest = nullptr;
  auto low = entries_.begin(), high = entries_.end();
  for (size_t length = 0; low != high; ++length) {
    if (low->pattern.size() == length) {
      if (length > 0) longest = &*low;
      if (++low == high) break;
    }
    if (at + length == text.size()) break;
    const char byte = text[at + length];
    const auto less = [&](char a, char b) { return static_cast<unsigned char>(a) < static_cast<unsigned char>(b); };
    low = std::lower_bound(low, high, byte, [&](const Entry& e, char b) { return less(e.pattern[length], b); });
    high = std::upper_bound(low, high, byte, [&](char b, const Entry& e) { return less(b, e.pattern[length]); });
  }
  return longest;
}

const AddedTokenFinder::Entry* AddedTokenFinder::find(std::string_view text, size_t& at) const {
  if (entries_.empty()) return nullptr;
  for (; at < text.size(); ++at) {
    if (!begins_[static_cast<unsigned char>(text[at])]) continue;
    if (const Entry* entry = longest_at(text, at)) return entry;
  }
  return nullptr;
}

bool AddedTokenFinder::widen(const Entry& entry, std::string_view text, size_t done, Piece& piece) {
  const auto before = [&] { return decode_utf8(text, previous_utf8(text, piece.begin)).code; };
  const auto after = [&] { return decode_utf8(text, piece.end).code; };
  if (entry.single_word) {
    if (piece.begin > 0 && unicode::is_added_token_word(before())) return false;
    if (piece.end < text.size() && unicode::is_added_token_word(after())) return false;
  }
  if (entry.lstrip) {
    while (piece.begin > done && unicode::is_space(before())) piece.begin = previous_utf8(text, piece.begin);
    piece.begin = std::max(piece.begin, done);
  }
  if (entry.rstrip)
    while (piece.end < text.size() && unicode::is_space(after())) piece.end += decode_utf8(text, piece.end).bytes;
  return true;
}

int64_t AddedTokenFinder::memory_bytes() const {
  size_t bytes = entries_.capacity() * sizeof(Entry) + neighbours_.capacity() * sizeof(uint64_t);
  for (const Entry& entry : entries_) bytes += entry.pattern.capacity();
  for (const auto* edges : {&lstrip_begins_, &rstrip_ends_, &word_begins_, &word_ends_})
    bytes += edges->capacity() * sizeof(char32_t);
  return static_cast<int64_t>(bytes);
}

AddedTokens AddedTokens::read(const Component& list, const TokenVocabulary& vocabulary, const Normalizer& normalizer) {
  if (!list.value().is_array()) list.refuse("is not a list");
  if (list.value().size() > kMaxTokens) list.refuse(fmt::format("has more than {} tokens", kMaxTokens));
  AddedTokens result;
  for (size_t i = 0; i < list.value().size(); ++i) {
    const Component entry(list.value()[i], fmt::format("{}[{}]", list.place(), i));
    AddedToken token;
    token.content = entry.text("content");
    if (token.content.empty()) continue;
    if (token.content.size() > kMaxContentBytes) entry.refuse(fmt::format("content of {} bytes", token.content.size()));
    token.special = entry.flag("special", false);
    token.normalized = entry.flag("normalized", !token.special);
    token.single_word = entry.flag("single_word", false);
    token.lstrip = entry.flag("lstrip", false);
    token.rstrip = entry.flag("rstrip", false);
    const int32_t known = vocabulary.find(token.content);
    token.id = known != TokenVocabulary::kNone ? known : entry.number("id");
    if (known == TokenVocabulary::kNone && vocabulary.contains(static_cast<uint32_t>(token.id)))
      entry.refuse(fmt::format("id {} belongs to \"{}\" in model.vocab", token.id,
                               vocabulary.token(static_cast<uint32_t>(token.id))));
    if (static_cast<uint32_t>(token.id) >= TokenVocabulary::kIdLimit)
      entry.refuse(fmt::format("id {} is above {}", token.id, TokenVocabulary::kIdLimit - 1));
    token.spelling = token.normalized ? normalizer.apply(token.content, false) : token.content;
    result.tokens_.push_back(std::move(token));
  }
  result.index(list);
  for (const bool normalized : {false, true}) {
    std::vector<AddedToken> kind;
    std::vector<std::string> patterns;
    for (const AddedToken& token : result.tokens_) {
      if (token.normalized != normalized) continue;
      kind.push_back(token);
      patterns.push_back(token.spelling);
    }
    (normalized ? result.normalized_ : result.raw_) = AddedTokenFinder(kind, std::move(patterns));
  }
  return result;
}

// Sorts the tokens by id. Of entries with the same id and content the last one stays.
void AddedTokens::index(const Component& list) {
  const auto by_id = [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; };
  std::stable_sort(tokens_.begin(), tokens_.end(), by_id);
  std::vector<AddedToken> kept;
  for (AddedToken& token : tokens_) {
    const bool again = !kept.empty() && kept.back().id == token.id;
    if (again && kept.back().content != token.content)
      list.refuse(fmt::format("\"{}\" and \"{}\" share id {}", kept.back().content, token.content, token.id));
    if (again)
      kept.back() = std::move(token);
    else
      kept.push_back(std::move(token));
  }
  kept.shrink_to_fit();
  tokens_ = std::move(kept);
  by_content_.resize(tokens_.size());
  for (size_t i = 0; i < by_content_.size(); ++i) by_content_[i] = static_cast<uint32_t>(i);
  std::sort(by_content_.begin(), by_content_.end(),
            [&](uint32_t a, uint32_t b) { return tokens_[a].content < tokens_[b].content; });
  for (size_t i = 1; i < by_content_.size(); ++i)
    if (tokens_[by_content_[i]].content == tokens_[by_content_[i - 1]].content)
      list.refuse(fmt::format("\"{}\" has two ids, {} and {}", tokens_[by_content_[i]].content,
                              tokens_[by_content_[i - 1]].id, tokens_[by_content_[i]].id));
}

const AddedToken* AddedTokens::find(int32_t id) const {
  const auto less = [](const AddedToken& token, int32_t value) { return token.id < value; };
  const auto found = std::lower_bound(tokens_.begin(), tokens_.end(), id, less);
  return found != tokens_.end() && found->id == id ? &*found : nullptr;
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto less = [&](uint32_t index, std::string_view value) { return tokens_[index].content < value; };
  const auto found = std::lower_bound(by_content_.begin(), by_content_.end(), content, less);
  return found != by_content_.end() && tokens_[*found].content == content ? &tokens_[*found] : nullptr;
}

int64_t AddedTokens::memory_bytes() const {
  size_t bytes = tokens_.capacity() * sizeof(AddedToken) + by_content_.capacity() * sizeof(uint32_t);
  for (const AddedToken& token : tokens_) bytes += token.content.capacity() + token.spelling.capacity();
  return static_cast<int64_t>(bytes) + raw_.memory_bytes() + normalized_.memory_bytes();
}

}  // namespace headroom
