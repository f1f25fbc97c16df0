// One row of a data file: which kind it is and where its parts lie.
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

// "text", "prompt, completion" ...: the keys that make the kind.
std::string_view row_kind_keys(RowKind kind);

// Where a row begins, for errors. Line 0 stands for the file as a whole.
struct RowPlace {
  std::string_view file;
  int64_t line = 0;    // from 1
  int64_t offset = 0;  // bytes from the file's beginning
};

// A part of a row: where it lies in the row's bytes.
struct RowPart {
  int64_t at = 0;  // of a JSON text behind its quote
  int64_t bytes = 0;
  bool escaped = false;  // a JSON text; else the bytes are the text, or the JSON of a list
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

// No class has a longer label.
inline constexpr size_t kLabelBytes = 4096;

// Parses a row, a JSON object. Among several kinds of keys the most specific wins: input_ids before messages before
// instruction before prompt before text; a label (not null) makes labelled rows of texts, pairs of texts and ids; other
// keys are ignored. Throws Error(format) naming file, line and byte: no JSON, no UTF-8, no object, a key twice, missing
// keys, wrong types. Allocates for errors and long labels alone. `bytes` outlives the row.
Row parse_row(const RowBytes& bytes, const RowPlace& place);

// Reads the text of a part piece by piece.
class RowText {
 public:
  // Nothing else reads the row's bytes meanwhile.
  RowText(const Row& row, const RowPart& part);
  // Writes what comes next into `into` (at least 4 bytes) and returns how many bytes; 0 at the end.
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
