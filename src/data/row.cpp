#include "data/row.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "data/json_scanner.h"

namespace headroom {
namespace {

constexpr std::string_view kShapes =
    "rows are {\"text\"}, {\"prompt\",\"completion\"}, {\"instruction\",\"input\",\"output\"}, {\"messages\"}, "
    "{\"text\",\"label\"}, {\"text\",\"text_pair\",\"label\"} or {\"input_ids\",\"labels\"}";

enum Key {
  text,
  prompt,
  completion,
  instruction,
  input,
  output,
  input_ids,
  labels,
  messages,
  tools,
  label,
  text_pair,
  key_count
};
constexpr std::array<std::string_view, key_count> kKeys = {"text",     "prompt", "completion", "instruction",
                                                           "input",    "output", "input_ids",  "labels",
                                                           "messages", "tools",  "label",      "text_pair"};

// The value of a known key: its text, whether it is a string, and where it lies.
struct Value {
  std::string_view content;
  char first = '\0';  // of the JSON text: '"' a string, '[' a list, 'n' null
  int64_t at = 0;
};
using Values = std::array<std::optional<Value>, key_count>;

std::optional<Key> known_key(std::string_view name) {
  const auto it = std::find(kKeys.begin(), kKeys.end(), name);
  if (it == kKeys.end()) return std::nullopt;
  return static_cast<Key>(it - kKeys.begin());
}

Values scan(std::span<char> buffer, const RowPlace& place) {
  JsonScanner json(buffer);
  if (json.peek() != '{') {
    json.skip_value();
    json.expect_end();
    refuse_row(place, "the row is no JSON object", kShapes);
  }
  Values values;
  json.expect('{');
  for (bool first = true; !json.accept('}'); first = false) {
    if (!first) json.expect(',');
    const auto key = known_key(json.string());
    json.expect(':');
    Value value;
    value.first = json.peek();
    value.at = json.position();
    if (key == messages || key == tools) {
      const std::span<char> kept = json.keep_value();
      value.content = {kept.data(), kept.size()};
    } else {
      value.content = value.first == '"' ? json.string() : json.skip_value();
    }
    if (!key) continue;
    if (values[*key]) refuse_row(place, fmt::format("the key '{}' is there twice", kKeys[*key]), "keep one of them");
    values[*key] = value;
  }
  json.expect_end();
  return values;
}

std::string_view text_of(const Values& values, Key key, const RowPlace& place) {
  if (!values[key]) refuse_row(place, fmt::format("the key '{}' is missing", kKeys[key]), kShapes);
  if (values[key]->first != '"')
    refuse_row(place, fmt::format("'{}' is {}, not a text", kKeys[key], values[key]->content.substr(0, 40)), kShapes);
  return values[key]->content;
}

std::span<char> list_of(const Values& values, Key key, std::span<char> buffer, const RowPlace& place) {
  if (!values[key])
    refuse_row(place, fmt::format("the key '{}' is missing", kKeys[key]),
               "give both lists; labels equal to input_ids score every token, -100 ignores one");
  if (values[key]->first != '[')
    refuse_row(place, fmt::format("'{}' is {}, not a list of integers", kKeys[key], values[key]->content.substr(0, 40)),
               kShapes);
  return buffer.subspan(static_cast<size_t>(values[key]->at), values[key]->content.size());
}

std::span<char> conversation_part(const Values& values, Key key, std::span<char> buffer, const RowPlace& place) {
  if (values[key]->first != '[')
    refuse_row(place, fmt::format("'{}' is {}, not a list", kKeys[key], values[key]->content.substr(0, 40)),
               "messages are [{\"role\":\"user\",\"content\":\"...\"}, ...]");
  return buffer.subspan(static_cast<size_t>(values[key]->at), values[key]->content.size());
}

// The class of a labelled row: an integer, or the text of a name.
void add_label(Row& row, const Value& value, std::string_view key, const RowPlace& place) {
  const bool digits = !value.content.empty() && value.content.find_first_not_of("-0123456789") == std::string::npos;
  if (value.first != '"' && !digits)
    refuse_row(place,
               fmt::format("'{}' is {}, neither an integer nor a class's name", key, value.content.substr(0, 40)),
               "a label is the number of its class from 0 on, or a name of config.json's label2id");
  row.label = value.content;
  row.label_named = value.first == '"';
}

bool has(const Values& values, Key key) { return values[key] && values[key]->first != 'n'; }

// Token ids with a class ("label", or "labels" that is no list) or with a label per position.
Row ids_row(const Values& values, std::span<char> buffer, const RowPlace& place) {
  Row row;
  const bool one = values[labels] && values[labels]->first != '[' && values[labels]->first != 'n';
  if (values[input_ids] && (one || (!values[labels] && has(values, label)))) {
    row.kind = RowKind::labelled_ids;
    row.ids = list_of(values, input_ids, buffer, place);
    row.ids_at = values[input_ids]->at;
    add_label(row, one ? *values[labels] : *values[label], kKeys[one ? labels : label], place);
    return row;
  }
  row.kind = RowKind::ids;
  row.ids = list_of(values, input_ids, buffer, place);
  row.labels = list_of(values, labels, buffer, place);
  row.ids_at = values[input_ids]->at;
  row.labels_at = values[labels]->at;
  return row;
}

Row row_of(const Values& values, std::span<char> buffer, const RowPlace& place) {
  Row row;
  if (values[input_ids] || values[labels]) {
    return ids_row(values, buffer, place);
  } else if (values[messages]) {
    row.kind = RowKind::messages;
    row.messages = conversation_part(values, messages, buffer, place);
    row.messages_at = values[messages]->at;
    if (!values[tools] || values[tools]->first == 'n') return row;
    row.tools = conversation_part(values, tools, buffer, place);
    row.tools_at = values[tools]->at;
  } else if (values[instruction]) {
    row.kind = RowKind::instruction;
    row.instruction = text_of(values, instruction, place);
    if (values[input] && values[input]->first != 'n') row.input = text_of(values, input, place);
    row.output = text_of(values, output, place);
  } else if (values[prompt] || values[completion]) {
    row.kind = RowKind::prompt;
    row.prompt = text_of(values, prompt, place);
    row.completion = text_of(values, completion, place);
  } else if (values[text]) {
    row.text = text_of(values, text, place);
    const bool pair = has(values, text_pair);
    if (pair && !has(values, label))
      refuse_row(place, "a pair of texts without a label", "add \"label\", or join the texts in \"text\"");
    if (!has(values, label)) return row;
    row.kind = pair ? RowKind::labelled_pair : RowKind::labelled;
    if (pair) row.text_pair = text_of(values, text_pair, place);
    add_label(row, *values[label], kKeys[label], place);
  } else {
    refuse_row(place, "the row has none of the keys that make a row", kShapes);
  }
  return row;
}

}  // namespace

std::string_view row_kind_keys(RowKind kind) {
  switch (kind) {
    case RowKind::text:
      return "text";
    case RowKind::prompt:
      return "prompt, completion";
    case RowKind::instruction:
      return "instruction, input, output";
    case RowKind::ids:
      return "input_ids, labels";
    case RowKind::messages:
      return "messages";
    case RowKind::labelled:
      return "text, label";
    case RowKind::labelled_pair:
      return "text, text_pair, label";
    case RowKind::labelled_ids:
      return "input_ids, label";
  }
  return "";
}

void refuse_row(const RowPlace& place, std::string_view problem, std::string_view remedy) {
  const std::string line = place.line == 0 ? "" : fmt::format("{}:", place.line);
  throw Error(ErrorKind::format, fmt::format("{}:{} {}", place.file, line, problem), std::string(remedy));
}

Row parse_row(std::span<char> buffer, const RowPlace& place) {
  try {
    return row_of(scan(buffer, place), buffer, place);
  } catch (const JsonProblem& problem) {
    const bool encoding = problem.what.rfind("not UTF-8", 0) == 0;
    refuse_row(place,
               fmt::format("{} at byte {} of the file", encoding ? problem.what : "no JSON: " + problem.what,
                           place.offset + problem.position),
               encoding ? "convert the file to UTF-8"
                        : "each row is one JSON object, on one line unless the file is a JSON list");
  }
}

}  // namespace headroom
