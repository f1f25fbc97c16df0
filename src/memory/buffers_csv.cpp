#include "memory/buffers_csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <string>

#include "base/error.h"

namespace headroom {
namespace {

constexpr int64_t kNumberLimit = int64_t{1} << 62;
constexpr std::uintmax_t kFileLimit = std::uintmax_t{1} << 30;
constexpr size_t kShownCharacters = 40;

enum Column { kId, kLower, kUpper, kSize, kOffset, kColumns };
constexpr std::array<std::string_view, kColumns> kColumnNames = {"id", "lower", "upper", "size", "offset"};

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Text fit for a message: printable and short.
std::string shown(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, kShownCharacters)) result += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > kShownCharacters ? result + "..." : result;
}

class CsvParser {
 public:
  CsvParser(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  std::vector<Buffer> parse() {
    if (!next_line()) fail("the file is empty", "begin with the line id,lower,upper,size");
    parse_header();
    std::vector<Buffer> buffers;
    std::vector<std::pair<int64_t, size_t>> ids;  // id, line
    while (next_line()) {
      if (trim(current_).empty()) continue;
      buffers.push_back(parse_buffer());
      ids.emplace_back(buffers.back().id, line_);
    }
    std::sort(ids.begin(), ids.end());
    for (size_t i = 1; i < ids.size(); ++i) {
      if (ids[i].first != ids[i - 1].first) continue;
      line_ = ids[i].second;
      fail(fmt::format("id {} was used before in line {}", ids[i].first, ids[i - 1].second),
           "give every buffer an id of its own");
    }
    return buffers;
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& remedy) const {
    throw Error(ErrorKind::format, fmt::format("{}: line {}: {}", name_, line_, what), remedy);
  }

  bool next_line() {
    if (text_.empty()) return false;
    const size_t end = text_.find('\n');
    current_ = text_.substr(0, end);
    text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
    ++line_;
    return true;
  }

  // Takes the next field off the current line; false after the last one.
  bool next_field(std::string_view& rest, bool& ended, std::string_view& field) const {
    if (ended) return false;
    const size_t comma = rest.find(',');
    field = trim(rest.substr(0, comma));
    ended = comma == std::string_view::npos;
    if (!ended) rest.remove_prefix(comma + 1);
    return true;
  }

  void parse_header() {
    std::string_view rest = current_;
    std::string_view field;
    std::array<bool, kColumns> present{};
    for (bool ended = false; next_field(rest, ended, field);) {
      const auto found = std::find(kColumnNames.begin(), kColumnNames.end(), field);
      if (found == kColumnNames.end()) {
        fail(fmt::format("unknown column \"{}\"", shown(field)),
             "name the columns id,lower,upper,size and perhaps offset");
      }
      const auto column = static_cast<Column>(found - kColumnNames.begin());
      if (present[column]) fail(fmt::format("column {} appears twice", *found), "name each column once");
      present[column] = true;
      columns_.push_back(column);
    }
    for (int column = kId; column <= kSize; ++column) {
      if (present[static_cast<size_t>(column)]) continue;
      fail(fmt::format("column {} is missing", kColumnNames[static_cast<size_t>(column)]),
           "name the columns id,lower,upper,size and perhaps offset");
    }
  }

  Buffer parse_buffer() const {
    std::array<int64_t, kColumns> values{};
    values[kOffset] = -1;
    std::string_view rest = current_;
    std::string_view field;
    size_t count = 0;
    for (bool ended = false; next_field(rest, ended, field); ++count) {
      if (count == columns_.size()) fail(fmt::format("more than {} fields", count), "give one field per column");
      if (columns_[count] == kOffset && field.empty()) continue;
      values[columns_[count]] = parse_number(field, columns_[count]);
    }
    if (count < columns_.size()) {
      fail(fmt::format("{} fields for {} columns", count, columns_.size()), "give one field per column");
    }
    if (values[kUpper] <= values[kLower]) {
      fail(fmt::format("upper {} is not above lower {}", values[kUpper], values[kLower]),
           "upper is the first slot where the buffer is dead");
    }
    return {values[kId], values[kLower], values[kUpper], values[kSize], values[kOffset]};
  }

  int64_t parse_number(std::string_view field, Column column) const {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error != std::errc() || end != field.data() + field.size() || value < 0 || value > kNumberLimit) {
      fail(fmt::format("{} \"{}\" is not a whole number from 0 to 2^62", kColumnNames[column], shown(field)),
           "write plain decimal digits");
    }
    return value;
  }

  std::string_view text_;
  std::string_view name_;
  std::string_view current_;
  size_t line_ = 0;
  std::vector<Column> columns_;
};

}  // namespace

std::vector<Buffer> parse_buffers_csv(std::string_view text, std::string_view name) {
  return CsvParser(text, name).parse();
}

std::vector<Buffer> read_buffers_csv(const std::filesystem::path& path) {
  std::error_code code;
  const std::uintmax_t bytes = std::filesystem::file_size(path, code);
  if (code)
    throw Error(ErrorKind::usage, fmt::format("{}: {}", path.string(), code.message()), "name a readable CSV file");
  if (bytes > kFileLimit) {
    throw Error(ErrorKind::format, fmt::format("{}: {} bytes are too many for a list of buffers", path.string(), bytes),
                "keep it below 1 GiB");
  }
  std::ifstream in(path, std::ios::binary);
  std::string text(static_cast<size_t>(bytes), '\0');
  in.read(text.data(), static_cast<std::streamsize>(bytes));
  if (!in) throw Error(ErrorKind::usage, fmt::format("{}: cannot be read", path.string()), "name a readable CSV file");
  return parse_buffers_csv(text, path.string());
}

void write_buffers_csv(std::ostream& out, std::span<const Buffer> buffers, const OffsetAssignment* assignment) {
  HR_CHECK(assignment == nullptr || assignment->offsets.size() == buffers.size(), "{} offsets for {} buffers",
           assignment->offsets.size(), buffers.size());
  std::string text = assignment == nullptr ? "id,lower,upper,size\n" : "id,lower,upper,size,offset\n";
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    text += fmt::format("{},{},{},{}", buffer.id, buffer.lower, buffer.upper, buffer.size);
    if (assignment != nullptr) text += fmt::format(",{}", assignment->offsets[i]);
    text += '\n';
  }
  out << text;
}

}  // namespace headroom
