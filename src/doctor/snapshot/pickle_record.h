// Typed access to the dictionaries of a pickle, with the path in error messages.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "formats/pickle_document.h"

namespace headroom::doctor {

// Path of a record in the snapshot: "device_traces[0][17]". Formatted only for errors.
struct RecordPlace {
  const char* list = "";
  int64_t outer = -1, inner = -1;
  std::string text() const;
};

// Finds the entries of dictionaries by name. Refuses what a snapshot cannot have: dictionaries of more than 64 entries,
// sizes above 256 TiB, and sums of sizes above 2^62 bytes, so that no sum overflows.
class RecordReader {
 public:
  RecordReader(const PickleDocument& document, const std::string& source) : document_(document), source_(source) {}

  const PickleDocument& document() const { return document_; }
  // Selects the record that the next calls read. Throws Error(format) when it is not a dictionary.
  void open(PickleValue record, const RecordPlace& place);
  std::optional<PickleValue> entry(std::string_view name);
  // A number of bytes; if the entry is missing, `fallback`, or an error without one.
  int64_t size(std::string_view name, std::optional<int64_t> fallback = std::nullopt);
  // An address or a stream; 0 when missing. Addresses above 2^63 wrap to negative numbers and stay in order.
  int64_t address(std::string_view name);
  int64_t integer(std::string_view name, int64_t fallback);
  std::string_view text(std::string_view name);  // empty when missing
  bool boolean(std::string_view name);           // false when missing
  // A cursor over a list, at the end at once when the entry is missing. Throws when the entry is not a list.
  PickleDocument::Cursor list(std::string_view name);
  [[noreturn]] void fail(const std::string& what) const;

 private:
  const PickleDocument& document_;
  const std::string& source_;
  PickleValue record_;
  RecordPlace place_;
  int64_t sum_ = 0;
  std::map<std::string_view, std::optional<PickleValue>> names_;
};

}  // namespace headroom::doctor
