// One row of a data file: which kind it is and where its parts lie.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

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

// Views into the buffer that was parsed. Parts that the kind does not have are empty.
struct Row {
  RowKind kind = RowKind::text;
  std::string_view text;                        // text, labelled, labelled_pair
  std::string_view text_pair;                   // labelled_pair: the second of two texts
  std::string_view prompt, completion;          // prompt
  std::string_view instruction, input, output;  // instruction
  std::span<char> ids, labels;                  // ids, labelled_ids (without labels): JSON lists of numbers
  int64_t ids_at = 0, labels_at = 0;            // their offsets in the buffer
  std::span<char> messages, tools;              // messages: JSON lists, not yet unescaped; tools may be empty
  int64_t messages_at = 0, tools_at = 0;
  std::string_view label;    // labelled, labelled_pair, labelled_ids: a class's name, or its number in digits
  bool label_named = false;  // the label was written as a text: it may be a name
};

// Parses a row, a JSON object, in place (the buffer's strings are unescaped). Among several kinds of keys the most
// specific wins: input_ids before messages before instruction before prompt before text; a label (not null) makes
// labelled rows of texts, pairs of texts and ids; other keys are ignored. Throws Error(format) naming file, line and
// byte: no JSON, no UTF-8, no object, a key twice, missing keys, wrong types. Allocates only for errors.
Row parse_row(std::span<char> buffer, const RowPlace& place);

// Throws Error(format) "FILE:LINE: PROBLEM", without a line when it is 0.
[[noreturn]] void refuse_row(const RowPlace& place, std::string_view problem, std::string_view remedy);

}  // namespace headroom
