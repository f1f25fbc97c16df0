#include "report/json_file.h"

#include <cmath>
#include <fstream>

#include "base/bytes.h"
#include "base/error.h"

namespace headroom::report {
namespace {

constexpr int64_t kLargest = int64_t{1} << 60;
constexpr const char* kRemedy =
    "the file is damaged or written by another program: give a file that `headroom train` wrote";

// The parser treats a NUL as the end of the text.
void refuse_nul(std::string_view text, const std::string& place) {
  if (const size_t at = text.find('\0'); at != std::string_view::npos)
    throw Error(ErrorKind::format, fmt::format("{}: malformed JSON: a NUL byte at byte {}", place, at), kRemedy);
}

void refuse_depth(std::string_view text, const std::string& place) {
  constexpr int limit = 32;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    if (depth > limit)
      throw Error(ErrorKind::format, fmt::format("{}: nested deeper than {} levels at byte {}", place, limit, i),
                  kRemedy);
  }
}

}  // namespace

Field Field::at(std::string_view key) const {
  if (!has(key)) throw Error(ErrorKind::format, fmt::format("{}: there is no \"{}\"", place_, key), kRemedy);
  const bool top = place_.find(": ") == std::string::npos;
  return {(*value_)[std::string(key)], place_ + (top ? ": " : ".") + std::string(key)};
}

Field Field::at(size_t index) const {
  if (!value_->is_array() || index >= value_->size()) refuse(fmt::format("a list of more than {}", index));
  return {(*value_)[index], fmt::format("{}[{}]", place_, index)};
}

size_t Field::size(size_t limit) const {
  if (!value_->is_array()) refuse("a list");
  if (value_->size() > limit) refuse(fmt::format("a list of at most {}", limit));
  return value_->size();
}

int64_t Field::bytes() const {
  const int64_t value = whole();
  if (value < 0) refuse("0 or more");
  return value;
}

int64_t Field::whole() const {
  if (!value_->is_number_integer()) refuse("a whole number");
  if (value_->is_number_unsigned() && value_->get<uint64_t>() > static_cast<uint64_t>(kLargest))
    refuse("a number below 2^60");
  const int64_t value = value_->get<int64_t>();
  if (value > kLargest || value < -kLargest) refuse("a number below 2^60");
  return value;
}

double Field::number() const {
  if (!value_->is_number()) refuse("a number");
  const double value = value_->get<double>();
  if (!std::isfinite(value)) refuse("a finite number");
  return value;
}

bool Field::flag() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

std::string Field::text() const {
  if (!value_->is_string()) refuse("a text");
  return value_->get<std::string>();
}

void Field::refuse(std::string_view wanted) const {
  std::string found = value_->dump(-1, ' ', true, Json::error_handler_t::replace);
  if (found.size() > 60) found = found.substr(0, 57) + "...";
  throw Error(ErrorKind::format, fmt::format("{} is {}, not {}", place_, found, wanted), kRemedy);
}

Json parse(std::string_view text, const std::string& place) {
  refuse_nul(text, place);
  refuse_depth(text, place);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& e) {
    throw Error(ErrorKind::format,
                fmt::format("{}: malformed JSON at byte {} of {}", place, e.byte > 0 ? e.byte - 1 : 0, text.size()),
                kRemedy);
  } catch (const Json::exception&) {
    throw Error(ErrorKind::format, fmt::format("{}: malformed JSON: a number out of range", place), kRemedy);
  }
}

Json read_file(const std::filesystem::path& path, int64_t limit) {
  std::error_code status;
  const auto size = std::filesystem::file_size(path, status);
  if (status)
    throw Error(ErrorKind::usage, fmt::format("cannot read {}: {}", path.string(), status.message()),
                "check the path and its permissions");
  if (static_cast<int64_t>(size) > limit)
    throw Error(ErrorKind::format,
                fmt::format("{} has {}, more than the {} of such a file", path.string(),
                            format_bytes(static_cast<int64_t>(size)), format_bytes(limit)),
                kRemedy);
  std::string text(size, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in) throw Error(ErrorKind::usage, fmt::format("cannot read {}", path.string()), "check the file's permissions");
  return parse(text, path.string());
}

std::optional<Json> read_if_there(const std::filesystem::path& path, int64_t limit) {
  std::error_code status;
  if (!std::filesystem::exists(path, status)) return std::nullopt;
  return read_file(path, limit);
}

}  // namespace headroom::report
