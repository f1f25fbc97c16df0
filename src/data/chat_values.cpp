#include "data/chat_values.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "data/json_scanner.h"
#include "jinja/problem.h"

namespace headroom {
namespace {

jinja::Value read(JsonScanner& json, jinja::Budget& budget);

jinja::Value read_list(JsonScanner& json, jinja::Budget& budget) {
  std::vector<jinja::Value> items;
  json.expect('[');
  while (!json.accept(']')) {
    if (!items.empty()) json.expect(',');
    items.push_back(read(json, budget));
  }
  return jinja::make_list(budget, jinja::ListKind::list, std::move(items));
}

jinja::Value read_object(JsonScanner& json, jinja::Budget& budget) {
  auto dict = std::make_shared<jinja::Dict>(budget);
  json.expect('{');
  for (bool first = true; !json.accept('}'); first = false) {
    if (!first) json.expect(',');
    const jinja::Value key = jinja::make_text(budget, std::string(json.string()));
    json.expect(':');
    dict->set(key, read(json, budget));
  }
  return jinja::Value(jinja::DictRef(std::move(dict)));
}

jinja::Value read_number(std::string_view text) {
  const char* end = text.data() + text.size();
  if (text.find_first_of(".eE") == std::string_view::npos) {
    int64_t integer = 0;
    if (std::from_chars(text.data(), end, integer).ec != std::errc())
      jinja::fail(fmt::format("the integer {} is beyond 64 bits", text.substr(0, 40)));
    return jinja::Value(integer);
  }
  double real = 0;
  if (std::from_chars(text.data(), end, real).ec != std::errc())
    jinja::fail(fmt::format("the number {} is out of range", text.substr(0, 40)));
  return jinja::Value(real);
}

jinja::Value read(JsonScanner& json, jinja::Budget& budget) {
  const jinja::Level level(budget);
  budget.step();
  const char first = json.peek();
  if (first == '[') return read_list(json, budget);
  if (first == '{') return read_object(json, budget);
  if (first == '"') return jinja::make_text(budget, std::string(json.string()));
  const std::string_view text = json.skip_value();
  if (first == 'n') return jinja::Value();
  if (first == 't' || first == 'f') return jinja::Value(first == 't');
  return read_number(text);
}

}  // namespace

jinja::Value chat_value(std::span<char> json, int64_t at, const RowPlace& place, jinja::Budget& budget) {
  JsonScanner scanner(json);
  try {
    jinja::Value value = read(scanner, budget);
    scanner.expect_end();
    return value;
  } catch (const jinja::Problem& problem) {
    refuse_row(place, "the conversation holds " + problem.text, "split the conversation into shorter ones");
  } catch (const JsonProblem& problem) {
    refuse_row(place,
               fmt::format("no JSON: {} at byte {} of the file", problem.what, place.offset + at + problem.position),
               "each row is one JSON object");
  }
}

}  // namespace headroom
