// The SAX handler behind read_tokenizer_json().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/json.h"
#include "formats/tokenizer_json.h"
#include "formats/tokenizer_merges.h"
#include "formats/tokenizer_vocabulary.h"

namespace headroom {

// Streams model.vocab and model.merges into tables and keeps everything else as a DOM. Throws Error(format) with the
// place for every problem.
class TokenizerSax final : public nlohmann::json_sax<Json> {
 public:
  // With `vocabulary`, reads only model.merges, with the ids of `vocabulary`.
  explicit TokenizerSax(const std::string& source, const TokenVocabulary* vocabulary = nullptr);

  // The kind for a model.type. Throws Error(format) naming it, with a remedy, if it is not supported.
  static TokenModelKind kind_of_model(const std::string& type, const std::string& source);

  // Whether model.vocab was an object (saw_vocabulary) or a list of pieces with their scores (saw_pieces).
  bool saw_vocabulary() const { return saw_vocabulary_ && !saw_pieces_; }
  bool saw_pieces() const { return saw_pieces_; }
  bool saw_merges() const { return saw_merges_; }
  // Whether merges came before the vocabulary and were skipped: then a second pass must read them.
  bool merges_before_vocabulary() const { return skipped_merges_; }
  Json take_root() && { return std::move(root_); }
  TokenVocabulary take_vocabulary() && { return std::move(own_vocabulary_); }
  std::vector<TokenMerge> take_merges() && { return std::move(merges_); }
  std::vector<double> take_scores() && { return std::move(scores_); }

  bool null() override { return value(nullptr); }
  bool boolean(bool v) override { return value(v); }
  bool number_integer(number_integer_t v) override;
  bool number_unsigned(number_unsigned_t v) override;
  bool number_float(number_float_t v, const string_t& text) override;
  bool string(string_t& v) override;
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override;
  bool key(string_t& v) override;
  bool end_object() override;
  bool start_array(std::size_t) override;
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string& token, const Json::exception& error) override;

 private:
  enum class Part { document, vocabulary, pieces, merges, skipped };

  bool value(Json v);
  Json* insert(Json v);
  void descend();
  bool ascend();
  bool begins(const char* name) const;
  void add_merge(std::string_view left, std::string_view right);
  void add_merge_line(std::string_view line);
  bool score(double v);
  void add_piece();
  [[noreturn]] void refuse_piece(const Json& v) const;
  [[noreturn]] void refuse(const std::string& problem) const;

  const std::string& source_;
  const TokenVocabulary* vocabulary_;  // ids of the merges' tokens; null until model.vocab is read
  TokenVocabulary own_vocabulary_;
  TokenVocabulary::Builder builder_;
  std::vector<TokenMerge> merges_;
  std::vector<double> scores_;     // of the pieces read so far
  std::vector<std::string> pair_;  // parts of the merge being read as a list
  std::string token_;              // the vocabulary entry being read
  size_t piece_fields_ = 0;        // fields of the piece read so far: none, its token, its score
  std::string joined_;
  Json root_;
  std::vector<Json*> open_;        // objects and lists of the DOM being filled, from the root on
  std::vector<std::string> keys_;  // key being filled at each depth of the DOM
  size_t values_ = 0;
  size_t depth_ = 0;
  size_t part_depth_ = 0;  // depth at which the current part began
  size_t rank_ = 0;
  Part part_ = Part::document;
  bool only_merges_;
  bool saw_vocabulary_ = false;
  bool saw_pieces_ = false;
  bool saw_merges_ = false;
  bool skipped_merges_ = false;
};

}  // namespace headroom
