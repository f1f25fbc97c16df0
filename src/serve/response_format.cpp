#include "serve/response_format.h"

#include <fmt/format.h>

#include <vector>

#include "serve/api_error.h"

namespace headroom {
namespace {

using Kind = GrammarSource::Kind;

GrammarSource schema_source(const JsonFields& fields, const char* name, const OrderedJson& schema) {
  if (!schema.is_object() && !schema.is_boolean()) fields.refuse(name, "must hold a JSON schema, which is an object");
  GrammarSource source;
  source.kind = Kind::json_schema;
  source.name = name;
  source.text = schema.dump();
  return source;
}

GrammarSource text_source(const char* name, Kind kind, std::string text) {
  GrammarSource source;
  source.kind = kind;
  source.name = name;
  source.text = std::move(text);
  return source;
}

GrammarSource choice_source(const JsonFields& fields, const char* name, const OrderedJson& choices) {
  GrammarSource source;
  source.kind = Kind::choices;
  source.name = name;
  for (const OrderedJson& choice : choices) {
    if (!choice.is_string()) fields.refuse(name, "must be a list of texts");
    source.choices.push_back(choice.get<std::string>());
  }
  if (source.choices.empty()) fields.refuse(name, "is empty");
  return source;
}

std::optional<GrammarSource> of_response_format(const JsonFields& fields) {
  const OrderedJson* format = fields.object("response_format");
  if (!format) return {};
  const JsonFields inner(*format, "response_format.");
  const std::string type = inner.text("type").value_or("");
  if (type == "text") return {};
  if (type == "json_object") {
    const OrderedJson* schema = inner.find("schema");
    return schema ? schema_source(inner, "schema", *schema) : text_source("response_format", Kind::json_object, {});
  }
  if (type != "json_schema") inner.refuse("type", "must be text, json_object or json_schema");
  const OrderedJson* named = inner.object("json_schema");
  if (!named) inner.refuse("json_schema", "is missing");
  const JsonFields schema(*named, "response_format.json_schema.");
  const OrderedJson* text = schema.find("schema");
  if (!text) schema.refuse("schema", "is missing");
  return schema_source(schema, "schema", *text);
}

std::vector<GrammarSource> guided(const JsonFields& fields) {
  std::vector<GrammarSource> all;
  if (const OrderedJson* schema = fields.find("guided_json")) {
    const OrderedJson parsed =
        schema->is_string() ? OrderedJson::parse(schema->get<std::string>(), nullptr, false) : *schema;
    all.push_back(schema_source(fields, "guided_json", parsed));
  }
  if (auto text = fields.text("guided_regex"))
    all.push_back(text_source("guided_regex", Kind::regular_expression, std::move(*text)));
  if (auto text = fields.text("guided_grammar"))
    all.push_back(text_source("guided_grammar", Kind::ebnf, std::move(*text)));
  if (const OrderedJson* choices = fields.array("guided_choice"))
    all.push_back(choice_source(fields, "guided_choice", *choices));
  // llama.cpp's names.
  if (const OrderedJson* schema = fields.find("json_schema"))
    all.push_back(schema_source(fields, "json_schema", *schema));
  if (auto text = fields.text("grammar")) all.push_back(text_source("grammar", Kind::ebnf, std::move(*text)));
  return all;
}

// vLLM's newer names for the same.
std::vector<GrammarSource> structured(const JsonFields& fields) {
  const OrderedJson* options = fields.object("structured_outputs");
  if (!options) return {};
  const JsonFields inner(*options, "structured_outputs.");
  std::vector<GrammarSource> all;
  if (const OrderedJson* schema = inner.find("json")) all.push_back(schema_source(inner, "json", *schema));
  if (auto text = inner.text("regex")) all.push_back(text_source("regex", Kind::regular_expression, std::move(*text)));
  if (auto text = inner.text("grammar")) all.push_back(text_source("grammar", Kind::ebnf, std::move(*text)));
  if (const OrderedJson* choices = inner.array("choice")) all.push_back(choice_source(inner, "choice", *choices));
  if (inner.flag("json_object").value_or(false)) all.push_back(text_source("json_object", Kind::json_object, {}));
  return all;
}

}  // namespace

std::optional<GrammarSource> read_response_format(const JsonFields& fields) {
  std::vector<GrammarSource> asked = guided(fields);
  for (GrammarSource& source : structured(fields)) asked.push_back(std::move(source));
  if (std::optional<GrammarSource> format = of_response_format(fields)) asked.push_back(std::move(*format));
  if (asked.size() > 1)
    throw ApiError(400, fmt::format("{} and {} cannot be combined", asked[0].name, asked[1].name), "response_format");
  return asked.empty() ? std::nullopt : std::optional(std::move(asked[0]));
}

}  // namespace headroom
