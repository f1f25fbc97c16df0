#include "data/class_names.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/counter_random.h"
#include "base/error.h"

namespace headroom {
namespace {

constexpr size_t kNamesShown = 8;

}  // namespace

ClassNames::ClassNames(int64_t count, std::map<std::string, int32_t, std::less<>> names)
    : count_(count), names_(std::move(names)) {
  HR_CHECK(count >= 1 && count <= INT32_MAX, "{} classes", count);
  for (const auto& [name, index] : names_) HR_CHECK(index >= 0 && index < count, "class {} of {}", index, count);
}

int32_t ClassNames::class_of(const Row& row, const RowPlace& place) const {
  if (row.label.size() > kLabelBytes)
    refuse_row(place, fmt::format("the label has more than {} bytes", kLabelBytes), "give a class's number or name");
  if (row.label_named)
    if (const auto at = names_.find(row.label); at != names_.end()) return at->second;
  int64_t value = -1;
  const char* const end = row.label.data() + row.label.size();
  const auto [rest, error] = std::from_chars(row.label.data(), end, value);
  const bool number = error == std::errc() && rest == end;
  if (number && value >= 0 && value < count_) return static_cast<int32_t>(value);
  std::string known;
  for (const auto& [name, index] : names_) {
    if (index >= static_cast<int32_t>(kNamesShown)) continue;
    known += fmt::format("{}'{}' = {}", known.empty() ? ", or a name: " : ", ", name, index);
  }
  refuse_row(
      place,
      number || error == std::errc::result_out_of_range
          ? fmt::format("the label {} is out of range: the model has {} classes", row.label.substr(0, 40), count_)
          : fmt::format("the label '{}' is not a class of the model", row.label.substr(0, 40)),
      fmt::format("give a number from 0 to {}{}; config.json's num_labels, id2label and label2id say which "
                  "classes there are",
                  count_ - 1, known));
}

uint64_t ClassNames::key() const {
  uint64_t key = mix64(static_cast<uint64_t>(count_));
  for (const auto& [name, index] : names_) key = mix64(key ^ hash_text(name)) + static_cast<uint64_t>(index);
  return key;
}

}  // namespace headroom
