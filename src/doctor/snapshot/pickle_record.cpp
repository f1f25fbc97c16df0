#include "doctor/snapshot/pickle_record.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "base/error.h"

namespace headroom::doctor {
namespace {

constexpr int kMostEntries = 64;
constexpr int64_t kLargestSize = int64_t{1} << 48, kLargestSum = int64_t{1} << 62;

// The value of an unsigned 64-bit integer in nine bytes, which is how Python writes addresses from 2^63 on.
std::optional<int64_t> unsigned_address(std::string_view bytes) {
  if (bytes.size() != 9 || bytes[8] != '\0') return std::nullopt;
  uint64_t value = 0;
  for (size_t i = 8; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return static_cast<int64_t>(value);
}

}  // namespace

std::string RecordPlace::text() const {
  std::string out = list;
  if (outer >= 0) out += fmt::format("[{}]", outer);
  if (inner >= 0) out += fmt::format("[{}]", inner);
  return out;
}

void RecordReader::fail(const std::string& what) const {
  throw Error(ErrorKind::format,
              fmt::format("{}: {}{}{}", source_, place_.text(), *place_.list == '\0' ? "" : ": ", what),
              "bring the file that torch.cuda.memory._dump_snapshot wrote, unchanged");
}

void RecordReader::open(PickleValue record, const RecordPlace& place) {
  record_ = record;
  place_ = place;
  if (!record.is(PickleKind::dict))
    fail(fmt::format("needs a dictionary and finds {}", pickle_kind_name(record.kind())));
  auto cursor = document_.members(record);
  for (int i = 0; i < kMostEntries && !cursor.done(); ++i) cursor.next();
  if (!cursor.done()) fail(fmt::format("the dictionary has more than {} entries", kMostEntries));
}

std::optional<PickleValue> RecordReader::entry(std::string_view name) {
  const auto [at, added] = names_.try_emplace(name);
  if (added) at->second = document_.text_value(name);
  if (!at->second) return std::nullopt;
  return document_.find(record_, *at->second);
}

int64_t RecordReader::size(std::string_view name, std::optional<int64_t> fallback) {
  const auto value = entry(name);
  if (!value && fallback) return *fallback;
  if (!value) fail(fmt::format("'{}' is missing", name));
  const auto bytes = document_.integer(*value);
  if (!bytes) fail(fmt::format("'{}' is {}, not a number of bytes", name, pickle_kind_name(value->kind())));
  if (*bytes < 0 || *bytes > kLargestSize) fail(fmt::format("'{}' is {} bytes, which no device has", name, *bytes));
  sum_ += *bytes;
  if (sum_ > kLargestSum) fail("all sizes together exceed 4 EiB");
  return *bytes;
}

int64_t RecordReader::address(std::string_view name) {
  const auto value = entry(name);
  if (!value || value->is(PickleKind::none)) return 0;
  const auto address =
      value->is(PickleKind::big_integer) ? unsigned_address(document_.text(*value)) : document_.integer(*value);
  if (!address || *address > std::numeric_limits<int64_t>::max() - kLargestSize)
    fail(fmt::format("'{}' is not an address", name));
  return *address;
}

int64_t RecordReader::integer(std::string_view name, int64_t fallback) {
  const auto value = entry(name);
  return value ? document_.integer(*value).value_or(fallback) : fallback;
}

std::string_view RecordReader::text(std::string_view name) {
  const auto value = entry(name);
  return value ? document_.text(*value) : std::string_view();
}

bool RecordReader::boolean(std::string_view name) { return integer(name, 0) != 0; }

PickleDocument::Cursor RecordReader::list(std::string_view name) {
  const auto value = entry(name);
  if (!value || value->is(PickleKind::none)) return document_.members(PickleValue());
  if (!value->is(PickleKind::list) && !value->is(PickleKind::tuple))
    fail(fmt::format("'{}' is {}, not a list", name, pickle_kind_name(value->kind())));
  return document_.members(*value);
}

}  // namespace headroom::doctor
