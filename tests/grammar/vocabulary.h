// Vocabularies for the tests, and a text of a grammar over one of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../data_files/data_files.h"
#include "formats/json.h"
#include "grammar/grammar_matcher.h"
#include "text_of.h"
#include "tokenizer/stream_decoder.h"

namespace headroom {

struct Vocabulary {
  explicit Vocabulary(const Tokenizer& of) : tokenizer(of), tokens(of), trie(tokens, of.vocab_size()) {}
  static Vocabulary stories() { return Vocabulary(Tokenizer::load(test::data_file("stories260K"))); }

  Tokenizer tokenizer;
  TokenBytes tokens;
  TokenTrie trie;
};

// A byte-level tokenizer of the bytes and further tokens.
inline Tokenizer tokenizer_of(const std::vector<std::string>& more) {
  Json json = Json::parse(bytes_tokenizer_json());
  Json& vocab = json["model"]["vocab"];
  int64_t next = 258;  // after BOS and EOS
  for (const std::string& token : more) vocab[token] = next++;
  return Tokenizer::from_json(json.dump(), "test");
}

class GrammarText {
 public:
  GrammarText(const Grammar& grammar, const Vocabulary& vocabulary, const GrammarLimits& limits = {})
      : grammar_(grammar),
        vocabulary_(vocabulary),
        end_(vocabulary.tokenizer.eos_id().value()),
        matcher_(grammar_.automaton, vocabulary.trie, vocabulary.tokens, {end_}, limits),
        decoder_(vocabulary.tokenizer) {}

  GrammarMatcher& matcher() { return matcher_; }
  int32_t end() const { return end_; }
  void add(int32_t id) {
    matcher_.accept(id);
    ids.push_back(id);
    shown += decoder_.push(id);
  }
  std::string text() const { return vocabulary_.tokenizer.decode(ids); }

  std::vector<int32_t> ids;
  std::string shown;  // in pieces, as when streaming

 private:
  Grammar grammar_;
  const Vocabulary& vocabulary_;
  int32_t end_;
  GrammarMatcher matcher_;
  StreamDecoder decoder_;
};

}  // namespace headroom
