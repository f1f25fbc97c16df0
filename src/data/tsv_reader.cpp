#include "data/tsv_reader.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

constexpr std::string_view kForm =
    "a line is text TAB label; a header line names the columns: text and label, or sentence1, sentence2 and label";

size_t columns_of(std::span<char> line) { return static_cast<size_t>(std::count(line.begin(), line.end(), '\t')) + 1; }

std::string_view column(std::span<char> line, size_t index) {
  std::string_view rest(line.data(), line.size());
  for (; index > 0; --index) rest.remove_prefix(rest.find('\t') + 1);
  return rest.substr(0, rest.find('\t'));
}

}  // namespace

bool TsvReader::is_header(std::span<char> line, const RowPlace& place) {
  std::optional<size_t> text, label, text_pair;
  bool repeated = false;
  const size_t count = columns_of(line);
  for (size_t i = 0; i < std::min<size_t>(count, 64); ++i) {
    const std::string_view name = column(line, i);
    std::optional<size_t>* at = nullptr;
    if (name == "text" || name == "sentence" || name == "sentence1") at = &text;
    if (name == "text_pair" || name == "sentence2") at = &text_pair;
    if (name == "label") at = &label;
    if (at == nullptr) continue;
    repeated = repeated || at->has_value();
    *at = i;
  }
  if (!text || !label) return false;
  if (repeated) refuse_row(place, "the header names a text or the label twice", kForm);
  columns_ = count;
  text_ = *text;
  label_ = *label;
  text_pair_ = text_pair;
  return true;
}

std::optional<Row> TsvReader::read(std::span<char> line, const RowPlace& place) {
  const bool first = first_;
  first_ = false;
  if (first && is_header(line, place)) return std::nullopt;
  if (const size_t count = columns_of(line); count != columns_)
    refuse_row(place, fmt::format("{} columns where {} were expected", count, columns_), kForm);
  try {
    require_utf8({line.data(), line.size()}, static_cast<size_t>(place.offset));
  } catch (const Error& e) {
    refuse_row(place, e.what(), "convert the file to UTF-8");
  }
  Row row;
  row.kind = RowKind::labelled;
  row.text = column(line, text_);
  if (text_pair_) {
    row.kind = RowKind::labelled_pair;
    row.text_pair = column(line, *text_pair_);
  }
  row.label = column(line, label_);
  row.label_named = true;
  if (row.label.empty()) refuse_row(place, "the label is empty", kForm);
  return row;
}

}  // namespace headroom
