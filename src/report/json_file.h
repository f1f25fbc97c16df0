// Checked reading of the files of a run, which may be cut off, edited or another program's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::report {

using Json = nlohmann::json;

// A value of a file, with its place for errors: "out/plan.json: breakdown.weights".
class Field {
 public:
  Field(const Json& value, std::string place) : value_(&value), place_(std::move(place)) {}

  // The member `key`. Throws Error(format) if there is none.
  Field at(std::string_view key) const;
  // The element `index`. Throws Error(format) if there is none.
  Field at(size_t index) const;
  bool has(std::string_view key) const { return value_->is_object() && value_->contains(key); }
  // The number of elements of an array. Throws Error(format) if it is not an array, or longer than `limit`.
  size_t size(size_t limit) const;
  // The value itself. Each throws Error(format) naming the place if it is of another kind.
  int64_t bytes() const;  // an integer, 0 or more, below 2^60
  int64_t whole() const;  // an integer within 2^60 of 0
  double number() const;  // finite
  bool flag() const;
  std::string text() const;

 private:
  [[noreturn]] void refuse(std::string_view wanted) const;

  const Json* value_;
  std::string place_;
};

// Parses `text`; `place` names it in errors. Throws Error(format) with the byte where parsing failed.
Json parse(std::string_view text, const std::string& place);

// Reads a file of at most `limit` bytes. Throws Error(usage) if it cannot be read, Error(format) if it is malformed or
// larger.
Json read_file(const std::filesystem::path& path, int64_t limit = int64_t{4} << 20);
// The same; nullopt if there is no such file.
std::optional<Json> read_if_there(const std::filesystem::path& path, int64_t limit = int64_t{4} << 20);

}  // namespace headroom::report
