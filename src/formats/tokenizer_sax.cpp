#include "formats/tokenizer_sax.h"

#include <utility>

#include "base/error.h"
#include "formats/tokenizer_score.h"

namespace headroom {
namespace {

constexpr size_t kMaxDepth = 64;
// Values besides vocabulary and merges; a thousand added tokens are about 10,000 values.
constexpr size_t kMaxValues = 1'000'000;
constexpr size_t kMaxTokenBytes = 1 << 20;

// A value as quoted in errors.
std::string quoted(const Json& value) {
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > 60) text.replace(57, std::string::npos, "...");
  return text;
}

}  // namespace

TokenizerSax::TokenizerSax(const std::string& source, const TokenVocabulary* vocabulary)
    : source_(source), vocabulary_(vocabulary), only_merges_(vocabulary != nullptr) {}

void TokenizerSax::refuse(const std::string& problem) const {
  throw Error(ErrorKind::format, fmt::format("{}: {}", source_, problem), "correct or re-download the tokenizer.json");
}

TokenModelKind TokenizerSax::kind_of_model(const std::string& type, const std::string& source) {
  if (type == "BPE") return TokenModelKind::bpe;
  if (type == "WordPiece") return TokenModelKind::word_piece;
  if (type == "Unigram") return TokenModelKind::unigram;
  throw Error(ErrorKind::format, fmt::format("{}: model.type \"{}\" is not supported", source, type),
              "use a model whose tokenizer is BPE, WordPiece or Unigram, or tokenise the data elsewhere into rows of "
              "{\"input_ids\", \"labels\"}");
}

bool TokenizerSax::parse_error(std::size_t position, const std::string& token, const Json::exception& error) {
  refuse(fmt::format("malformed JSON at byte {} near \"{}\": {}", position, token.substr(0, 40), error.what()));
}

// Whether the value that begins here is model.NAME.
bool TokenizerSax::begins(const char* name) const {
  return part_ == Part::document && depth_ == 2 && keys_.size() == 2 && keys_[0] == "model" && keys_[1] == name;
}

Json* TokenizerSax::insert(Json v) {
  if (++values_ > kMaxValues)
    refuse(fmt::format("more than {} values beside model.vocab and model.merges", kMaxValues));
  if (open_.empty()) {
    root_ = std::move(v);
    return &root_;
  }
  Json& parent = *open_.back();
  if (parent.is_array()) {
    parent.push_back(std::move(v));
    return &parent.back();
  }
  return &(parent[keys_.back()] = std::move(v));
}

bool TokenizerSax::value(Json v) {
  switch (part_) {
    case Part::document:
      if (begins("vocab") || begins("merges")) refuse(fmt::format("model.{} is {}, not a table", keys_[1], quoted(v)));
      if (!only_merges_) {
        if (begins("type") && v.is_string()) kind_of_model(v.get<std::string>(), source_);
        insert(std::move(v));
      }
      return true;
    case Part::vocabulary:
      refuse(fmt::format("model.vocab: token \"{}\" has the id {}, which is not a number from 0 to {}", token_,
                         quoted(v), TokenVocabulary::kIdLimit - 1));
    case Part::pieces:
      refuse_piece(v);
    case Part::merges:
      refuse(fmt::format("model.merges[{}] is {}, not a pair of tokens", rank_, quoted(v)));
    case Part::skipped:
      break;
  }
  return true;
}

bool TokenizerSax::number_integer(number_integer_t v) {
  return part_ == Part::pieces ? score(static_cast<double>(v)) : value(v);
}

bool TokenizerSax::number_float(number_float_t v, const string_t& text) {
  return part_ == Part::pieces ? score(parse_token_score(text)) : value(v);
}

bool TokenizerSax::number_unsigned(number_unsigned_t v) {
  if (part_ == Part::pieces) return score(static_cast<double>(v));
  if (part_ != Part::vocabulary || v >= TokenVocabulary::kIdLimit) return value(v);
  if (token_.size() > kMaxTokenBytes)
    refuse(fmt::format("model.vocab: the token of id {} has {} bytes", v, token_.size()));
  builder_.add(token_, static_cast<uint32_t>(v));
  return true;
}

bool TokenizerSax::string(string_t& v) {
  if (part_ == Part::pieces) {
    if (depth_ == part_depth_ || piece_fields_ != 0) refuse_piece(v);
    token_ = std::move(v);
    piece_fields_ = 1;
    return true;
  }
  if (part_ != Part::merges) return value(std::move(v));
  if (depth_ == part_depth_) {
    add_merge_line(v);
  } else {
    if (pair_.size() == 2) refuse(fmt::format("model.merges[{}] has more than two tokens", rank_));
    pair_.push_back(std::move(v));
  }
  return true;
}

void TokenizerSax::descend() {
  if (++depth_ > kMaxDepth) refuse(fmt::format("nested deeper than {} levels", kMaxDepth));
}

bool TokenizerSax::start_object(std::size_t) {
  if (part_ == Part::vocabulary || part_ == Part::pieces || part_ == Part::merges) return value(Json::object());
  const bool vocabulary = begins("vocab");
  if (begins("merges")) refuse("model.merges is an object, not a list");
  if (vocabulary && saw_vocabulary_) refuse("model.vocab appears twice");
  descend();
  if (vocabulary) {
    saw_vocabulary_ = true;
    part_ = only_merges_ ? Part::skipped : Part::vocabulary;
    part_depth_ = depth_;
  } else if (part_ == Part::document) {
    open_.push_back(only_merges_ ? &root_ : insert(Json::object()));
    keys_.emplace_back();
  }
  return true;
}

bool TokenizerSax::key(string_t& v) {
  if (part_ == Part::vocabulary)
    token_ = std::move(v);
  else if (part_ == Part::document)
    keys_.back() = std::move(v);
  return true;
}

// Leaves a list or object; returns whether that ends the streamed part.
bool TokenizerSax::ascend() {
  const bool ends_part = part_ != Part::document && depth_ == part_depth_;
  --depth_;
  if (part_ == Part::document) {
    open_.pop_back();
    keys_.pop_back();
  }
  return ends_part;
}

bool TokenizerSax::end_object() {
  const Part part = part_;
  if (!ascend()) return true;
  part_ = Part::document;
  if (part == Part::vocabulary) {
    own_vocabulary_ = std::move(builder_).finish(source_);
    vocabulary_ = &own_vocabulary_;
  }
  return true;
}

bool TokenizerSax::start_array(std::size_t) {
  if (part_ == Part::vocabulary) return value(Json::array());
  if (part_ == Part::merges && depth_ > part_depth_) refuse(fmt::format("model.merges[{}] has a list within", rank_));
  if (part_ == Part::pieces && depth_ > part_depth_) refuse_piece(Json::array());
  const bool pieces = begins("vocab");
  const bool merges = begins("merges");
  if (pieces && saw_vocabulary_) refuse("model.vocab appears twice");
  if (merges && saw_merges_) refuse("model.merges appears twice");
  descend();
  if (part_ == Part::pieces) {
    piece_fields_ = 0;
  } else if (pieces) {
    saw_vocabulary_ = saw_pieces_ = true;
    part_ = only_merges_ ? Part::skipped : Part::pieces;
    part_depth_ = depth_;
  } else if (merges) {
    saw_merges_ = true;
    skipped_merges_ = vocabulary_ == nullptr;
    part_ = skipped_merges_ ? Part::skipped : Part::merges;
    part_depth_ = depth_;
  } else if (part_ == Part::document) {
    open_.push_back(only_merges_ ? &root_ : insert(Json::array()));
    keys_.emplace_back();
  }
  return true;
}

bool TokenizerSax::end_array() {
  const bool pair_ends = part_ == Part::merges && depth_ == part_depth_ + 1;
  const Part part = part_;
  if (part == Part::pieces && depth_ == part_depth_ + 1) add_piece();
  if (ascend()) {
    part_ = Part::document;
    if (part != Part::pieces) return true;
    own_vocabulary_ = std::move(builder_).finish(source_, TokenVocabulary::Repeated::highest_id);
    vocabulary_ = &own_vocabulary_;
    scores_.shrink_to_fit();
  } else if (pair_ends) {
    if (pair_.size() != 2) refuse(fmt::format("model.merges[{}] has {} tokens, not two", rank_, pair_.size()));
    add_merge(pair_[0], pair_[1]);
    pair_.clear();
  }
  return true;
}

void TokenizerSax::add_merge_line(std::string_view line) {
  if (line.starts_with("#version")) return;
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
    refuse(fmt::format("model.merges[{}]: \"{}\" is not two tokens with a space between", rank_, line));
  add_merge(line.substr(0, space), line.substr(space + 1));
}

void TokenizerSax::add_merge(std::string_view left, std::string_view right) {
  const auto id_of = [&](std::string_view token) {
    const int32_t id = vocabulary_->find(token);
    if (id == TokenVocabulary::kNone)
      refuse(fmt::format("model.merges[{}] (\"{}\", \"{}\"): \"{}\" is not in model.vocab", rank_, left, right, token));
    return static_cast<uint32_t>(id);
  };
  joined_.assign(left).append(right);
  const uint32_t merged = id_of(joined_);
  merges_.push_back({id_of(left), id_of(right), static_cast<uint32_t>(rank_++), merged});
}

void TokenizerSax::refuse_piece(const Json& v) const {
  refuse(fmt::format("model.vocab[{}]: {} where a pair of token and score is expected", scores_.size(), quoted(v)));
}

bool TokenizerSax::score(double v) {
  if (depth_ == part_depth_ || piece_fields_ != 1) refuse_piece(v);
  if (scores_.size() == TokenVocabulary::kIdLimit)
    refuse(fmt::format("model.vocab has more than {} tokens", TokenVocabulary::kIdLimit));
  if (token_.size() > kMaxTokenBytes)
    refuse(fmt::format("model.vocab[{}]: a token of {} bytes", scores_.size(), token_.size()));
  builder_.add(token_, static_cast<uint32_t>(scores_.size()));
  scores_.push_back(v);
  piece_fields_ = 2;
  return true;
}

void TokenizerSax::add_piece() {
  if (piece_fields_ != 2) refuse_piece(Json::array());
}

}  // namespace headroom
