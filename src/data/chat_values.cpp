#include "data/chat_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "data/json_scanner.h"
#include "jinja/problem.h"

namespace headroom {
namespace {

jinja::Value read(JsonScanner& json, jinja::Budget& budget);

// A text, read in pieces; its memory while it grows is counted in the budget.
jinja::Value read_text(JsonScanner& json, jinja::Budget& budget) {
  std::array<char, 2048> piece;
  std::string text;
  jinja::Charge growing(budget, 0);
  json.open_string();
  while (const size_t count = json.read_string(piece)) {
    if (text.size() + count > text.capacity()) {
      growing.add(static_cast<int64_t>(std::max(text.capacity(), count)));  // from then on its capacity is counted
      budget.check_text(text.size() + count);
    }
    text.append(piece.data(), count);
  }
  growing = {};
  return jinja::make_text(budget, std::move(text));
}

jinja::Value read_list(JsonScanner& json, jinja::Budget& budget) {
  std::vector<jinja::Value> items;
  jinja::Charge growing(budget, 0);
  json.expect('[');
  while (!json.accept(']')) {
    if (!items.empty()) json.expect(',');
    if (items.size() == items.capacity())
      growing.add(static_cast<int64_t>(std::max<size_t>(items.size(), 1) * sizeof(jinja::Value)));
    items.push_back(read(json, budget));
  }
  growing = {};
  return jinja::make_list(budget, jinja::ListKind::list, std::move(items));
}

jinja::Value read_object(JsonScanner& json, jinja::Budget& budget) {
  auto dict = std::make_shared<jinja::Dict>(budget);
  json.expect('{');
  for (bool first = true; !json.accept('}'); first = false) {
    if (!first) json.expect(',');
    json.peek();
    const jinja::Value key = read_text(json, budget);
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
  if (first == '"') return read_text(json, budget);
  if (first == '-' || (first >= '0' && first <= '9')) return read_number(json.number());
  json.skip_value();
  return first == 'n' ? jinja::Value() : jinja::Value(first == 't');
}

}  // namespace

jinja::Value chat_value(const Row& row, const RowPart& part, const RowPlace& place, jinja::Budget& budget) {
  JsonScanner scanner(*row.bytes, part.at, part.at + part.bytes);
  try {
    jinja::Value value = read(scanner, budget);
    scanner.expect_end();
    return value;
  } catch (const jinja::Problem& problem) {
    refuse_row(place, "the conversation holds " + problem.text,
               "split the conversation into shorter ones, or give a larger --memory");
  } catch (const JsonProblem& problem) {
    refuse_row(place, fmt::format("not JSON: {} at byte {} of the file", problem.what, place.offset + problem.position),
               "each row is one JSON object");
  }
}

}  // namespace headroom
