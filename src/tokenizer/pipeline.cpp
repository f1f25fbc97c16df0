#include "tokenizer/pipeline.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/bpe.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

// Passes words to the model.
class EncodingSink final : public WordSink {
 public:
  EncodingSink(const TokenModel& model, double score, TokenizerWorkspace& workspace, std::vector<int32_t>& ids)
      : model_(model), score_(score), workspace_(workspace), ids_(ids) {}
  void word(PreTokenizerInput piece) override {
    model_.encode({piece.text, piece.continued == PreTokenizerInput::kWithinWord}, score_, workspace_, ids_);
  }
  double score() const { return score_; }

 private:
  const TokenModel& model_;
  double score_;  // of the last word
  TokenizerWorkspace& workspace_;
  std::vector<int32_t>& ids_;
};

}  // namespace

TokenizerPipeline::TokenizerPipeline(TokenizerJson file) : file_(std::move(file)) {
  const Component root(file_.root, file_.source);
  const auto part = [&](const char* key) {
    return Component(file_.root.at(key), fmt::format("{}: {}", file_.source, key));
  };
  if (root.has("normalizer")) normalizer_ = Normalizer::read(part("normalizer"));
  if (root.has("added_tokens")) added_ = AddedTokens::read(part("added_tokens"), file_.vocabulary, normalizer_);
  if (root.has("pre_tokenizer")) pre_tokenizer_ = PreTokenizer::read(part("pre_tokenizer"));
  if (file_.kind != TokenModelKind::bpe || !Bpe::takes_bytes(part("model"))) pre_tokenizer_.spell_bytes();
  model_ = TokenModel::read(part("model"), file_, pre_tokenizer_.gives_bytes());
  if (root.has("post_processor")) post_processor_ = PostProcessor::read(part("post_processor"));
  if (root.has("decoder")) decoder_ = DecoderPlan::read(part("decoder"));
  file_.root = Json();
  check_special_ids(file_.source);
}

// Ids that the post-processor adds must have a token: a model's embedding may have no rows beyond the vocabulary.
void TokenizerPipeline::check_special_ids(const std::string& source) const {
  std::vector<const std::vector<int32_t>*> lists{&post_processor_.prefix, &post_processor_.suffix};
  if (const auto& pair = post_processor_.pair) lists.insert(lists.end(), {&pair->prefix, &pair->middle, &pair->suffix});
  for (const auto* ids : lists)
    for (const int32_t id : *ids)
      if (!token(id, false))
        throw Error(ErrorKind::format, fmt::format("{}: post_processor: no token has the id {}", source, id),
                    "correct or re-download the tokenizer.json");
}

// For how many steps of the pre-tokenizer `text` is still joined to the text before the cut.
size_t TokenizerPipeline::continued_steps(TextPlace place, std::string_view text) const {
  if (place.begins_piece || place.begins_word) return 0;
  const Cut cut = cut_between(place.last_character, decode_utf8(text, 0).code);
  return cut.kind == CutKind::between_words ? cut.joined_steps : PreTokenizerInput::kWithinWord;
}

TextPlace TokenizerPipeline::encode(std::string_view text, TextPlace place, TokenizerWorkspace& workspace,
                                    std::vector<int32_t>& ids) const {
  if (text.empty()) return place;
  EncodingSink sink(*model_, place.score, workspace, ids);
  TextPlace next;
  const auto encode_normalized = [&](std::string_view normalized, bool opens, size_t continued) {
    const PreTokenizerInput whole{normalized, opens, continued};
    next.begins_word = false;
    if (added_.normalized().empty()) return pre_tokenizer_.split(whole, sink);
    added_.normalized().split(normalized, [&](AddedTokenFinder::Piece piece) {
      next.begins_word = piece.id >= 0;
      if (piece.id >= 0)
        ids.push_back(piece.id);
      else
        pre_tokenizer_.split(whole.part(piece.begin, piece.end), sink);
    });
  };
  added_.raw().split(text, [&](AddedTokenFinder::Piece piece) {
    next.begins_piece = piece.id >= 0;
    if (piece.id >= 0) return ids.push_back(piece.id);
    const std::string_view part = text.substr(piece.begin, piece.end - piece.begin);
    const bool opens = piece.begin == 0 && place.begins_text;
    const size_t continues = piece.begin == 0 ? continued_steps(place, text) : 0;
    if (normalizer_.changes_nothing()) return encode_normalized(part, opens, continues);
    bool drops_front = false;
    const bool continued = piece.begin == 0 && !place.begins_piece;
    const std::string normalized = normalizer_.apply(part, continued, opens ? &drops_front : nullptr);
    encode_normalized(normalized, opens && !drops_front, continues);
  });
  next.begins_text = false;
  next.last_character = decode_utf8(text, previous_utf8(text, text.size())).code;
  next.score = sink.score();
  return next;
}

void TokenizerPipeline::encode(std::string_view text, std::vector<int32_t>& ids) const {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) {
    encode(text, TextPlace{}, workspace_, ids);
    return;
  }
  TokenizerWorkspace own;
  encode(text, TextPlace{}, own, ids);
}

// What a cut at a boundary of normalized text does.
Cut TokenizerPipeline::cut_at(Boundary boundary) const {
  if (!added_.normalized().allows_cut(boundary) || !pre_tokenizer_.allows_cut(boundary)) return {};
  if (boundary.split) return {CutKind::between_words, boundary.joined_steps};
  if (pre_tokenizer_.gives_bytes()) spell_boundary(boundary);
  if (!model_->allows_cut(boundary)) return {};
  return {boundary.within ? CutKind::within_word : CutKind::either, 0};
}

Cut TokenizerPipeline::cut_between(char32_t left, char32_t right) const {
  BoundaryChoices choices(Boundary{left, right});
  if (!added_.raw().allows_cut(*choices.begin()) || !normalizer_.allows_cut(choices)) return {};
  const Cut cut = cut_at(*choices.begin());
  const bool agree =
      std::all_of(choices.begin() + 1, choices.end(), [&](const Boundary& b) { return cut_at(b) == cut; });
  return agree ? cut : Cut{};
}

std::optional<std::string_view> TokenizerPipeline::token(int32_t id, bool skip_special) const {
  if (id < 0) return std::nullopt;
  if (const AddedToken* added = added_.find(id)) {
    if (skip_special && added->special) return std::nullopt;
    return added->spelling;
  }
  if (!file_.vocabulary.contains(static_cast<uint32_t>(id))) return std::nullopt;
  return file_.vocabulary.token(static_cast<uint32_t>(id));
}

std::optional<int32_t> TokenizerPipeline::id(std::string_view token) const {
  if (const AddedToken* added = added_.find(token)) return added->id;
  const int32_t found = file_.vocabulary.find(token);
  if (found == TokenVocabulary::kNone) return std::nullopt;
  return found;
}

std::optional<int32_t> TokenizerPipeline::special_id(std::string_view token) const {
  const AddedToken* added = added_.find(token);
  if (added == nullptr || !added->special) return std::nullopt;
  return added->id;
}

int64_t TokenizerPipeline::vocab_size() const {
  const int64_t added = added_.tokens().empty() ? 0 : int64_t{added_.tokens().back().id} + 1;
  return std::max(added, int64_t{file_.vocabulary.id_limit()});
}

int64_t TokenizerPipeline::word_bytes_bound(int64_t bytes) const {
  return (bytes * normalizer_.growth() + normalizer_.prepended()) * pre_tokenizer_.growth();
}

int64_t TokenizerPipeline::memory_bytes() const {
  return static_cast<int64_t>(sizeof(TokenizerPipeline)) + file_.vocabulary.memory_bytes() +
         file_.merges.memory_bytes() + normalizer_.memory_bytes() + added_.memory_bytes() +
         pre_tokenizer_.memory_bytes() + model_->memory_bytes() + decoder_.memory_bytes() +
         static_cast<int64_t>(file_.scores.capacity() * sizeof(double)) + TokenizerWorkspace::kept_bytes();
}

}  // namespace headroom
