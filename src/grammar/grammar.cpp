#include "grammar/grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "grammar/automaton_builder.h"
#include "grammar/ebnf.h"
#include "grammar/expression.h"
#include "grammar/json_schema.h"
#include "grammar/regular_expression.h"
#include "grammar/schema_merge.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

void add_regular_expression(const GrammarSource& source, AutomatonBuilder& builder) {
  builder.at(source.name);
  const GrammarRuleId root = builder.declare(source.name);
  const ExpressionPointer expression = parse_regular_expression(source.text, source.name, true, builder);
  builder.at(source.name);
  builder.define(root, ExpressionStates(builder, CharacterSpelling::plain).of(*expression, AutomatonBuilder::end()));
}

void add_choices(const GrammarSource& source, AutomatonBuilder& builder) {
  constexpr size_t kMostChoices = 4096;
  builder.at(source.name);
  if (source.choices.size() > kMostChoices) builder.refuse(fmt::format("there are more than {} choices", kMostChoices));
  if (source.text_bytes() > builder.limits().source_bytes)
    builder.refuse(fmt::format("the choices have more than {} bytes", builder.limits().source_bytes));
  const GrammarRuleId root = builder.declare(source.name);
  std::set<std::string> texts;
  for (const std::string& choice : source.choices) {
    if (choice.empty()) builder.refuse("a choice is empty", "give the text of each choice");
    if (check_utf8(choice).valid != choice.size()) builder.refuse("a choice is not UTF-8");
    texts.insert(choice);
  }
  builder.define(root, builder.one_of({texts.begin(), texts.end()}, AutomatonBuilder::end()));
}

}  // namespace

int64_t GrammarSource::text_bytes() const {
  auto bytes = static_cast<int64_t>(text.size());
  for (const std::string& choice : choices) bytes += static_cast<int64_t>(choice.size() + sizeof(std::string));
  return bytes;
}

int64_t GrammarSource::compile_bound(Kind kind, int64_t text_bytes, const GrammarLimits& limits) {
  constexpr int64_t kPerByte = 256;                               // per character of an expression, parsed
  constexpr int64_t kPerState = 64, kPerRule = 256, kPlaces = 4;  // places are named in several tables
  constexpr int64_t kPerParsedByte = 40;                          // per byte of a schema's text, as for any JSON
  const int64_t text = std::min(text_bytes, limits.source_bytes);
  const int64_t automaton = kPerState * limits.states + kPerRule * limits.rules + kPlaces * limits.place_bytes;
  return automaton +
         (kind == Kind::json_schema ? kPerParsedByte * (text + SchemaMerge::most_bytes(text)) : kPerByte * text);
}

Grammar compile_grammar(const GrammarSource& source, const GrammarLimits& limits) {
  AutomatonBuilder builder(limits);
  Grammar out;
  switch (source.kind) {
    case GrammarSource::Kind::json_schema:
      add_json_schema(source.text, source.name, builder, out.notes);
      break;
    case GrammarSource::Kind::json_object:
      add_json_object(builder);
      break;
    case GrammarSource::Kind::regular_expression:
      add_regular_expression(source, builder);
      break;
    case GrammarSource::Kind::choices:
      add_choices(source, builder);
      break;
    case GrammarSource::Kind::ebnf:
      add_ebnf(source.text, source.name, builder);
      break;
  }
  out.automaton = builder.finish();
  return out;
}

}  // namespace headroom
