// Cuts a .jsonl, .json or .tsv file into rows with one buffer, whatever the file's size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "data/row.h"
#include "formats/file.h"

namespace headroom {

// json: lines of JSON, or the objects of one JSON list; the first byte that is no white space tells. lines: lines of
// text, as they are but for the line's end.
enum class RowFormat { json, lines };

// Used by one thread.
class RowSource {
 public:
  // Throws Error(usage) when the file is missing. Rows of more than `row_limit_bytes` are refused.
  RowSource(const std::filesystem::path& path, int64_t row_limit_bytes, RowFormat format = RowFormat::json);

  // Sets the next row that is not blank (of lines: not empty): its bytes (to be parsed in place) and place, valid until
  // the next call. False at the end. Throws Error(format) for a row above the limit, and for what stands between the
  // objects of a list.
  bool next(std::span<char>& row, RowPlace& place);

  int64_t bytes_read() const { return file_offset_; }
  int64_t file_bytes() const { return file_bytes_; }
  // Heap bytes of a source. Pages that no row reaches are never touched.
  static int64_t memory_bytes(int64_t row_limit_bytes);

 private:
  void detect();
  bool refill();
  int at();
  void advance();
  bool next_line(std::span<char>& row, RowPlace& place);
  bool next_element(std::span<char>& row, RowPlace& place);
  void skip_space();
  void skip_empty_lines();
  void skip_object(const RowPlace& place);
  RowPlace place_here() const;
  [[noreturn]] void refuse_length(const RowPlace& place) const;

  File file_;
  std::string name_;
  int64_t row_limit_;
  int64_t file_bytes_;
  int64_t file_offset_ = 0;  // of the end of what is in the buffer
  size_t capacity_;
  std::unique_ptr<char[]> buffer_;
  size_t begin_ = 0;  // of the row being cut
  size_t scan_ = 0;   // of the next byte to look at
  size_t end_ = 0;    // of what is in the buffer
  int64_t line_ = 1;
  RowFormat format_;
  bool is_list_ = false;
  bool first_element_ = true;
  bool ended_ = false;
};

}  // namespace headroom
