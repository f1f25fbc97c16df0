#include "data/row.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/error.h"
#include "data/json_scanner.h"

namespace headroom {
namespace {

constexpr std::string_view kShapes =
    "rows are {\"text\"}, {\"prompt\",\"completion\"}, {\"instruction\",\"input\",\"output\"}, {\"messages\"}, "
    "{\"text\",\"label\"}, {\"text\",\"text_pair\",\"label\"} or {\"input_ids\",\"labels\"}";

constexpr size_t kKeyBytes = 32;  // no known key is as long

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

// The value of a known key: its first byte and its position.
struct Value {
  char first = '\0';  // of the JSON text: '"' a string, '[' a list, 'n' null
  int64_t at = 0;
  int64_t bytes = 0;
};
using Values = std::array<std::optional<Value>, key_count>;

// A row's bytes and what its known keys hold.
struct Parsed {
  const RowBytes& bytes;
  const RowPlace& place;
  Values values;
};

std::optional<Key> known_key(std::string_view name) {
  const auto it = std::find(kKeys.begin(), kKeys.end(), name);
  if (it == kKeys.end()) return std::nullopt;
  return static_cast<Key>(it - kKeys.begin());
}

void scan(Parsed& row) {
  JsonScanner json(row.bytes);
  if (json.peek() != '{') {
    json.skip_value();
    json.expect_end();
    refuse_row(row.place, "the row is not a JSON object", kShapes);
  }
  json.expect('{');
  for (bool first = true; !json.accept('}'); first = false) {
    if (!first) json.expect(',');
    const auto key = known_key(json.string(kKeyBytes));
    json.expect(':');
    Value value;
    value.first = json.peek();
    value.at = json.position();
    json.skip_value();
    value.bytes = json.position() - value.at;
    if (!key) continue;
    if (row.values[*key])
      refuse_row(row.place, fmt::format("the key '{}' appears twice", kKeys[*key]), "keep one of them");
    row.values[*key] = value;
  }
  json.expect_end();
}

// The beginning of a value, unescaped for strings: at most `most` bytes.
std::string content_of(const Parsed& row, const Value& value, size_t most) {
  if (value.first == '"') return JsonScanner(row.bytes, value.at, value.at + value.bytes).string(most);
  std::string text;
  while (text.size() < most && static_cast<int64_t>(text.size()) < value.bytes) {
    const auto done = static_cast<int64_t>(text.size());
    text += row.bytes.from(value.at + done)
                .substr(0, std::min(most - text.size(), static_cast<size_t>(value.bytes - done)));
  }
  return text;
}

std::string shown(const Parsed& row, Key key) { return content_of(row, *row.values[key], 40); }

RowPart text_of(const Parsed& row, Key key) {
  const std::optional<Value>& value = row.values[key];
  if (!value) refuse_row(row.place, fmt::format("the key '{}' is missing", kKeys[key]), kShapes);
  if (value->first != '"')
    refuse_row(row.place, fmt::format("'{}' is {}, not a string", kKeys[key], shown(row, key)), kShapes);
  return {value->at + 1, value->bytes - 2, true};
}

RowPart list_of(const Parsed& row, Key key) {
  const std::optional<Value>& value = row.values[key];
  if (!value)
    refuse_row(row.place, fmt::format("the key '{}' is missing", kKeys[key]),
               "give both lists; labels equal to input_ids score every token, -100 ignores one");
  if (value->first != '[')
    refuse_row(row.place, fmt::format("'{}' is {}, not a list of integers", kKeys[key], shown(row, key)), kShapes);
  return {value->at, value->bytes, false};
}

RowPart conversation_part(const Parsed& row, Key key) {
  if (row.values[key]->first != '[')
    refuse_row(row.place, fmt::format("'{}' is {}, not a list", kKeys[key], shown(row, key)),
               "messages are [{\"role\":\"user\",\"content\":\"...\"}, ...]");
  return {row.values[key]->at, row.values[key]->bytes, false};
}

// The class of a labelled row: an integer, or the text of a name.
void add_label(Row& row, const Parsed& parsed, Key key) {
  const Value& value = *parsed.values[key];
  row.label = content_of(parsed, value, kLabelBytes + 1);
  row.label_named = value.first == '"';
  const bool digits = !row.label.empty() && row.label.find_first_not_of("-0123456789") == std::string::npos;
  if (!row.label_named && !digits)
    refuse_row(parsed.place,
               fmt::format("'{}' is {}, neither an integer nor a class's name", kKeys[key], row.label.substr(0, 40)),
               "a label is the number of its class from 0 on, or a name of config.json's label2id");
}

bool has(const Parsed& row, Key key) { return row.values[key] && row.values[key]->first != 'n'; }

// Token ids with a class ("label", or "labels" that is not a list) or with a label per position.
Row ids_row(const Parsed& parsed) {
  Row row;
  const Values& values = parsed.values;
  const bool one = values[labels] && values[labels]->first != '[' && values[labels]->first != 'n';
  if (values[input_ids] && (one || (!values[labels] && has(parsed, label)))) {
    row.kind = RowKind::labelled_ids;
    row.ids = list_of(parsed, input_ids);
    add_label(row, parsed, one ? labels : label);
    return row;
  }
  row.kind = RowKind::ids;
  row.ids = list_of(parsed, input_ids);
  row.labels = list_of(parsed, labels);
  return row;
}

Row text_row(const Parsed& parsed) {
  Row row;
  row.text = text_of(parsed, text);
  const bool pair = has(parsed, text_pair);
  if (pair && !has(parsed, label))
    refuse_row(parsed.place, "a pair of texts without a label", "add \"label\", or join the texts in \"text\"");
  if (!has(parsed, label)) return row;
  row.kind = pair ? RowKind::labelled_pair : RowKind::labelled;
  if (pair) row.text_pair = text_of(parsed, text_pair);
  add_label(row, parsed, label);
  return row;
}

Row row_of(const Parsed& parsed) {
  const Values& values = parsed.values;
  if (values[input_ids] || values[labels]) return ids_row(parsed);
  Row row;
  if (values[messages]) {
    row.kind = RowKind::messages;
    row.messages = conversation_part(parsed, messages);
    if (has(parsed, tools)) row.tools = conversation_part(parsed, tools);
  } else if (values[instruction]) {
    row.kind = RowKind::instruction;
    row.instruction = text_of(parsed, instruction);
    if (has(parsed, input)) row.input = text_of(parsed, input);
    row.output = text_of(parsed, output);
  } else if (values[prompt] || values[completion]) {
    row.kind = RowKind::prompt;
    row.prompt = text_of(parsed, prompt);
    row.completion = text_of(parsed, completion);
  } else if (values[text]) {
    return text_row(parsed);
  } else {
    refuse_row(parsed.place, "the row has none of the keys that make a row", kShapes);
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

Row parse_row(const RowBytes& bytes, const RowPlace& place) {
  try {
    Parsed parsed{bytes, place, {}};
    scan(parsed);
    Row row = row_of(parsed);
    row.bytes = &bytes;
    return row;
  } catch (const JsonProblem& problem) {
    const bool encoding = problem.what.rfind("not UTF-8", 0) == 0;
    refuse_row(place,
               fmt::format("{} at byte {} of the file", encoding ? problem.what : "not JSON: " + problem.what,
                           place.offset + problem.position),
               encoding ? "convert the file to UTF-8"
                        : "each row is one JSON object, on one line unless the file is a JSON list");
  }
}

RowText::RowText(const Row& row, const RowPart& part) : bytes_(*row.bytes), at_(part.at), end_(part.at + part.bytes) {
  if (!part.escaped) return;
  json_.emplace(bytes_, at_ - 1, end_ + 1);
  json_->open_string();
}

size_t RowText::read(std::span<char> into) {
  if (ended_) return 0;
  size_t count = 0;
  if (json_) {
    count = json_->read_string(into);
  } else if (at_ < end_) {
    const std::string_view piece = bytes_.from(at_).substr(0, std::min(into.size(), static_cast<size_t>(end_ - at_)));
    count = piece.copy(into.data(), piece.size());
    at_ += static_cast<int64_t>(count);
  }
  ended_ = count == 0;
  return count;
}

}  // namespace headroom
