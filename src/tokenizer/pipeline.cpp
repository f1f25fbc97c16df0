#include "tokenizer/pipeline.h"

#include <algorithm>

#include "base/error.h"

namespace headroom {
namespace {

// Gives words to the model.
class EncodingSink final : public WordSink {
 public:
  EncodingSink(const Bpe& bpe, BpeWorkspace& workspace, std::vector<int32_t>& ids)
      : bpe_(bpe), workspace_(workspace), ids_(ids) {}
  void word(PreTokenizerInput piece) override { bpe_.encode(piece.text, workspace_, ids_); }

 private:
  const Bpe& bpe_;
  BpeWorkspace& workspace_;
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
  if (!Bpe::takes_bytes(part("model"))) pre_tokenizer_.spell_bytes();
  bpe_.emplace(part("model"), file_, pre_tokenizer_.gives_bytes());
  if (root.has("post_processor")) post_processor_ = PostProcessor::read(part("post_processor"));
  if (root.has("decoder")) decoder_ = DecoderPlan::read(part("decoder"));
  file_.root = Json();
  check_special_ids(file_.source);
}

// Ids that the post-processor adds must have a token: a model's embedding is no larger than the vocabulary.
void TokenizerPipeline::check_special_ids(const std::string& source) const {
  for (const auto* ids : {&post_processor_.prefix, &post_processor_.suffix})
    for (const int32_t id : *ids)
      if (!token(id, false))
        throw Error(ErrorKind::format, fmt::format("{}: post_processor: no token has the id {}", source, id),
                    "mend or re-download the tokenizer.json");
}

TextPlace TokenizerPipeline::encode(std::string_view text, TextPlace place, BpeWorkspace& workspace,
                                    std::vector<int32_t>& ids) const {
  EncodingSink sink(*bpe_, workspace, ids);
  const auto encode_words = [&](std::string_view words, bool opens) { pre_tokenizer_.split({words, opens}, sink); };
  const auto encode_normalized = [&](std::string_view normalized, bool opens) {
    if (added_.normalized().empty()) {
      encode_words(normalized, opens);
      return;
    }
    added_.normalized().split(normalized, [&](AddedTokenFinder::Piece piece) {
      if (piece.id >= 0)
        ids.push_back(piece.id);
      else
        encode_words(normalized.substr(piece.begin, piece.end - piece.begin), opens && piece.begin == 0);
    });
  };
  TextPlace next = place;
  added_.raw().split(text, [&](AddedTokenFinder::Piece piece) {
    next = {false, piece.id >= 0};
    if (piece.id >= 0) {
      ids.push_back(piece.id);
      return;
    }
    const std::string_view part = text.substr(piece.begin, piece.end - piece.begin);
    const bool opens = piece.begin == 0 && place.begins_text;
    const bool continued = piece.begin == 0 && !place.begins_piece;
    if (normalizer_.changes_nothing())
      encode_normalized(part, opens);
    else
      encode_normalized(normalizer_.apply(part, continued), opens);
  });
  return next;
}

void TokenizerPipeline::encode(std::string_view text, std::vector<int32_t>& ids) const {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) {
    encode(text, TextPlace{}, workspace_, ids);
    return;
  }
  BpeWorkspace own;
  encode(text, TextPlace{}, own, ids);
}

bool TokenizerPipeline::allows_cut(char32_t left, char32_t right) const {
  Boundary boundary{left, right};
  if (!added_.raw().allows_cut(boundary) || !normalizer_.allows_cut(boundary)) return false;
  if (!added_.normalized().allows_cut(boundary) || !pre_tokenizer_.allows_cut(boundary)) return false;
  if (boundary.split) return true;
  if (pre_tokenizer_.gives_bytes()) spell_boundary(boundary);
  return bpe_->allows_cut(boundary);
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
         pre_tokenizer_.memory_bytes() + bpe_->memory_bytes() + decoder_.memory_bytes() + BpeWorkspace::kept_bytes();
}

}  // namespace headroom
