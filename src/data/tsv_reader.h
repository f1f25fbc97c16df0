// Converts lines of a .tsv file to rows of text and label.
#pragma once

#include <cstddef>
#include <optional>

#include "data/row.h"

namespace headroom {

// text TAB label, without quotes or escapes. A first line that names its columns is a header: it gives the columns of
// the text ("text", "sentence" or "sentence1"), the label ("label") and, for pairs, the second text ("text_pair" or
// "sentence2"). Used by one thread.
class TsvReader {
 public:
  // The row of the next line; nothing for a header. Throws Error(format) naming the line: another number of columns, no
  // UTF-8, no label. Allocates for errors and long labels alone. `line` outlives the row.
  std::optional<Row> read(const RowBytes& line, const RowPlace& place);

 private:
  bool is_header(const RowBytes& line, const RowPlace& place);

  bool first_ = true;
  size_t columns_ = 2, text_ = 0, label_ = 1;
  std::optional<size_t> text_pair_;
};

}  // namespace headroom
