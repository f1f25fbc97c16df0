#include "serve/choice_text.h"

#include <algorithm>

namespace headroom {

ChoiceText::ChoiceText(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                       const std::vector<std::string>& stops, bool keeps_special)
    : tokenizer_(&tokenizer), keeps_special_(keeps_special), decoder_(tokenizer, !keeps_special), stops_(stops) {
  size_t given = 0;
  for (const int32_t id : prompt) given += decoder_.push(id).size();
  const std::string all = tokenizer.decode(prompt, !keeps_special);
  held_ = all.substr(std::min(all.size(), given));
  if (!prompt.empty()) before_ = prompt.back();
}

// Removes what is left of the prompt's text. A character that starts in the prompt and ends in the answer belongs to
// the answer.
std::string ChoiceText::fresh(std::string piece) {
  if (held_.starts_with(piece)) {
    held_.erase(0, piece.size());
    return {};
  }
  if (piece.starts_with(held_)) piece.erase(0, held_.size());
  held_.clear();
  return piece;
}

// The text that the token would add at this point.
std::string ChoiceText::text_of(int32_t id) const {
  if (before_ < 0) return tokenizer_->decode({&id, 1}, !keeps_special_);
  const int32_t both[] = {before_, id};
  const std::string first = tokenizer_->decode({both, 1}, !keeps_special_);
  const std::string text = tokenizer_->decode(both, !keeps_special_);
  return text.starts_with(first) ? text.substr(first.size()) : tokenizer_->decode({&id, 1}, !keeps_special_);
}

std::string ChoiceText::add(const SequenceToken& token, TokenText& described) {
  std::string piece = fresh(decoder_.push(token.id));
  described.id = token.id;
  described.logprob = token.logprob;
  for (const RankedToken& other : token.best)
    described.best.emplace_back(other.id == token.id ? piece : text_of(other.id), other.logprob);
  described.text = piece;
  before_ = token.id;
  return stops_.push(piece);
}

std::string ChoiceText::finish() {
  std::string text = stops_.push(fresh(decoder_.finish()));
  return text + stops_.finish();
}

std::vector<TokenText> describe_prompt(const Tokenizer& tokenizer, const std::vector<SequenceToken>& tokens) {
  std::vector<TokenText> out;
  ChoiceText text(tokenizer, {}, {}, false);
  for (const SequenceToken& token : tokens) text.add(token, out.emplace_back());
  return out;
}

}  // namespace headroom
