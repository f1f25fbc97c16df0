// The classes of a classification model by number and name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "data/row.h"

namespace headroom {

// Const and thread-safe.
class ClassNames {
 public:
  ClassNames() = default;
  // Classes 0 .. count - 1; `names` says which of them have names (label2id), and some may have several.
  ClassNames(int64_t count, std::map<std::string, int32_t, std::less<>> names);

  int64_t count() const { return count_; }
  // The class of a labelled row. Throws Error(format) naming the row: no name and no number, or out of range.
  int32_t class_of(const Row& row, const RowPlace& place) const;
  // A hash of all names and classes.
  uint64_t key() const;

 private:
  int64_t count_ = 0;
  std::map<std::string, int32_t, std::less<>> names_;
};

}  // namespace headroom
