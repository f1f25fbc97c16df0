// A row of a data file: its kind and the positions of its parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "data/json_scanner.h"
#include "data/row_bytes.h"

namespace headroom {

enum class RowKind { text, prompt, instruction, ids, messages, labelled, labelled_pair, labelled_ids };

// "text", "prompt, completion" ...: the keys of the kind.
std::string_view row_kind_keys(RowKind kind);

// The position of a row, for errors. Line 0 means the file as a whole.
struct RowPlace {
  std::string_view file;
  int64_t line = 0;    // from 1
  int64_t offset = 0;  // bytes from the file's beginning
};

// The position of a part in the row's bytes.
struct RowPart {
  int64_t at = 0;  // for a JSON string, after its quote
  int64_t bytes = 0;
  bool escaped = false;  // a JSON string; otherwise the bytes are plain text, or the JSON of a list
  bool empty() const { return bytes == 0; }
};

// Parts that the kind does not have are empty.
struct Row {
  RowKind kind = RowKind::text;
  const RowBytes* bytes = nullptr;
  RowPart text;                        // text, labelled, labelled_pair
  RowPart text_pair;                   // labelled_pair: the second of two texts
  RowPart prompt, completion;          // prompt
  RowPart instruction, input, output;  // instruction
  RowPart ids, labels;                 // ids, labelled_ids (without labels): JSON lists of numbers
  RowPart messages, tools;             // messages: JSON lists; tools may be empty
  std::string label;                   // labelled, labelled_pair, labelled_ids: a class's name, or its number in digits
  bool label_named = false;            // the label was written as a text: it may be a name
};

// Longer labels are refused.
inline constexpr size_t kLabelBytes = 4096;

// Parses a row, a JSON object. Among several kinds of keys the most specific wins: input_ids before messages before
// instruction before prompt before text; a label (not null) makes labelled rows of texts, pairs of texts and ids; other
// keys are ignored. Throws Error(format) naming file, line and byte: no JSON, no UTF-8, no object, a key twice, missing
// keys, wrong types. Allocates for errors and long labels alone. `bytes` outlives the row.
Row parse_row(const RowBytes& bytes, const RowPlace& place);

// Reads the text of a part piece by piece.
class RowText {
 public:
  // Nothing else may read the row's bytes meanwhile.
  RowText(const Row& row, const RowPart& part);
  // Writes the next bytes into `into` (at least 4 bytes) and returns how many; 0 at the end.
  size_t read(std::span<char> into);

 private:
  const RowBytes& bytes_;
  int64_t at_, end_;
  std::optional<JsonScanner> json_;
  bool ended_ = false;
};

// Throws Error(format) "FILE:LINE: PROBLEM", without a line when it is 0.
[[noreturn]] void refuse_row(const RowPlace& place, std::string_view problem, std::string_view remedy);

}  // namespace headroom
