#include "data/tsv_reader.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

constexpr std::string_view kForm =
    "a line is text TAB label; a header line names the columns: text and label, or sentence1, sentence2 and label";

// Calls `visit(index, RowPart)` for each column and returns how many there are.
template <typename Visit>
size_t for_each_column(const RowBytes& line, Visit visit) {
  size_t count = 0;
  int64_t begin = 0;
  for (int64_t at = 0; at < line.size();) {
    const std::string_view piece = line.from(at);
    const size_t tab = piece.find('\t');
    if (tab == std::string_view::npos) {
      at += static_cast<int64_t>(piece.size());
      continue;
    }
    at += static_cast<int64_t>(tab);
    visit(count++, RowPart{begin, at - begin, false});
    begin = ++at;
  }
  visit(count++, RowPart{begin, line.size() - begin, false});
  return count;
}

// The first bytes of a part, at most `most`.
std::string bytes_of(const RowBytes& line, const RowPart& part, size_t most) {
  std::string text;
  const size_t wanted = std::min(most, static_cast<size_t>(part.bytes));
  while (text.size() < wanted)
    text += line.from(part.at + static_cast<int64_t>(text.size())).substr(0, wanted - text.size());
  return text;
}

void require_utf8_line(const RowBytes& line, const RowPlace& place) {
  constexpr int64_t longest = 4;
  for (int64_t at = 0; at < line.size();) {
    const std::string_view piece = line.from(at, longest);
    const bool last = at + static_cast<int64_t>(piece.size()) == line.size();
    const Utf8Check check = check_utf8(piece);
    if (check.broken > 0 && (last || !check.incomplete)) {
      try {
        require_utf8(piece, static_cast<size_t>(place.offset + at));
      } catch (const Error& e) {
        refuse_row(place, e.what(), "convert the file to UTF-8");
      }
    }
    at += static_cast<int64_t>(check.valid);
  }
}

}  // namespace

bool TsvReader::is_header(const RowBytes& line, const RowPlace& place) {
  constexpr size_t most_named = 64;
  std::optional<size_t> text, label, text_pair;
  bool repeated = false;
  std::array<RowPart, most_named> columns;
  const size_t count = for_each_column(line, [&](size_t i, RowPart part) {
    if (i < columns.size()) columns[i] = part;
  });
  for (size_t i = 0; i < std::min(count, columns.size()); ++i) {
    const std::string name = bytes_of(line, columns[i], 16);
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

std::optional<Row> TsvReader::read(const RowBytes& line, const RowPlace& place) {
  const bool first = first_;
  first_ = false;
  if (first && is_header(line, place)) return std::nullopt;
  Row row;
  row.kind = text_pair_ ? RowKind::labelled_pair : RowKind::labelled;
  row.bytes = &line;
  RowPart label;
  const size_t count = for_each_column(line, [&](size_t i, RowPart part) {
    if (i == text_) row.text = part;
    if (i == text_pair_) row.text_pair = part;
    if (i == label_) label = part;
  });
  if (count != columns_) refuse_row(place, fmt::format("{} columns where {} were expected", count, columns_), kForm);
  require_utf8_line(line, place);
  row.label = bytes_of(line, label, kLabelBytes + 1);
  row.label_named = true;
  if (row.label.empty()) refuse_row(place, "the label is empty", kForm);
  return row;
}

}  // namespace headroom
