// Splits a .jsonl, .json or .tsv file into rows with buffers that depend neither on the file's size nor on the rows'.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "data/row.h"
#include "data/row_bytes.h"
#include "formats/file.h"

namespace headroom {

// json: lines of JSON, or the objects of one JSON list, according to the first byte that is not white space. lines:
// lines of text, unchanged except for the line's end.
enum class RowFormat { json, lines };

// Used by one thread.
class RowSource {
 public:
  // Throws Error(usage) when the file is missing. Rows of more than `row_limit_bytes` are refused.
  RowSource(const std::filesystem::path& path, int64_t row_limit_bytes, RowFormat format = RowFormat::json);

  // Sets the next row that is not blank (for lines: not empty) and its position, valid until the next call. False at
  // the end. Throws Error(format) for a row above the limit, and for text between the objects of a list. A row that
  // does not fit the buffer is read again from the file, window after window, when its bytes are needed.
  bool next(RowBytes& row, RowPlace& place);

  int64_t bytes_read() const { return file_offset_; }
  int64_t file_bytes() const { return file_bytes_; }
  // Heap bytes of a source.
  static int64_t memory_bytes();

 private:
  void detect();
  bool refill();
  int at();
  void advance();
  bool next_line(RowBytes& row, RowPlace& place);
  bool next_element(RowBytes& row, RowPlace& place);
  void begin_row();
  int64_t row_length() const { return offset_of(scan_) - row_at_; }
  RowBytes finish_row(int64_t length);
  int64_t offset_of(size_t at) const { return file_offset_ - static_cast<int64_t>(end_ - at); }
  void skip_space();
  void skip_empty_lines();
  void skip_object(const RowPlace& place);
  RowPlace place_here() const;
  [[noreturn]] void refuse_length(const RowPlace& place) const;

  File file_;
  std::string name_;
  int64_t row_limit_;
  int64_t file_bytes_;
  int64_t file_offset_ = 0;  // of the end of the buffer's contents
  std::unique_ptr<char[]> buffer_;
  std::unique_ptr<char[]> window_;  // for a row that the buffer does not hold
  int64_t row_at_ = 0;              // offset in the file of the row being cut
  size_t begin_ = 0;                // start of the buffer's part still needed: the row, or the end of a long one
  size_t scan_ = 0;                 // of the next byte to look at
  size_t end_ = 0;                  // of the end of the buffer's contents
  int64_t line_ = 1;
  RowFormat format_;
  bool is_list_ = false;
  bool first_element_ = true;
  bool ended_ = false;
};

}  // namespace headroom
