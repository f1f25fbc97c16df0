#include "engine/generation_grammar.h"

#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "formats/file.h"

namespace headroom {
namespace {

// A schema is an object, true or false; everything else is a file's name.
bool is_schema_text(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && (text[first] == '{' || text == "true" || text == "false");
}

std::vector<const char*> asked_options(const GrammarOptions& options) {
  std::vector<const char*> asked;
  if (!options.json_schema.empty()) asked.push_back("--json-schema");
  if (options.json_object) asked.push_back("--json-object");
  if (options.regex) asked.push_back("--regex");
  if (!options.choices.empty()) asked.push_back("--choice");
  if (!options.grammar.empty()) asked.push_back("--grammar");
  return asked;
}

}  // namespace

std::optional<GrammarSource> grammar_source(const GrammarOptions& options) {
  const std::vector<const char*> asked = asked_options(options);
  if (asked.empty()) return std::nullopt;
  if (asked.size() > 1)
    throw Error(ErrorKind::usage, fmt::format("{} and {} cannot be combined", asked[0], asked[1]),
                "give one of --json-schema, --json-object, --regex, --choice and --grammar");
  const int64_t limit = GrammarLimits().source_bytes;
  GrammarSource source;
  source.name = asked[0];
  if (!options.json_schema.empty()) {
    source.kind = GrammarSource::Kind::json_schema;
    const bool is_text = is_schema_text(options.json_schema);
    if (!is_text) source.name = options.json_schema;
    source.text = is_text ? options.json_schema : read_text_file(options.json_schema, limit);
  } else if (options.regex) {
    source.kind = GrammarSource::Kind::regular_expression;
    source.text = *options.regex;
  } else if (!options.choices.empty()) {
    source.kind = GrammarSource::Kind::choices;
    source.choices = options.choices;
  } else if (!options.grammar.empty()) {
    source.kind = GrammarSource::Kind::ebnf;
    source.name = options.grammar.string();
    source.text = read_text_file(options.grammar, limit);
  }
  return source;
}

GenerationGrammar::GenerationGrammar(const GrammarSource& source, const Tokenizer& tokenizer, int64_t vocab,
                                     std::vector<int32_t> stop_ids)
    : grammar_(compile_grammar(source)),
      tokens_(tokenizer),
      trie_(tokens_, vocab),
      matcher_(grammar_.automaton, trie_, tokens_, std::move(stop_ids), GrammarLimits()) {}

int64_t GenerationGrammar::memory_bytes() const {
  const auto logits = trie_.vocab() * static_cast<int64_t>(sizeof(float));  // of the allowed tokens
  return align_up(grammar_.automaton.memory_bytes() + trie_.memory_bytes() + matcher_.memory_bytes() + logits, 4096);
}

int64_t GenerationGrammar::making_bound(const GrammarSource& source, int64_t tokenizer_file_bytes) {
  return align_up(source.compile_bound(GrammarLimits()) + TokenTrie::build_bound(tokenizer_file_bytes), 4096);
}

void book_making(PlanRequest& request, int64_t bytes) {
  request.prepare.least += bytes;
  request.prepare.most = request.prepare.least;
}

void book_grammar(PlanRequest& request, const GenerationGrammar& grammar) {
  (request.facts.is_cpu() ? request.process : request.host_process).grammar += grammar.memory_bytes();
}

}  // namespace headroom
