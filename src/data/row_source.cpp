#include "data/row_source.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"

namespace headroom {
namespace {

constexpr size_t kReadBytes = 65536;
constexpr size_t kHeldBytes = 131072;  // a row up to this size stays in the buffer
constexpr size_t kCapacity = kHeldBytes + kReadBytes;
constexpr size_t kWindowBytes = 65536;
constexpr size_t kKeptEnd = 16;  // of a longer row, for the line's end
constexpr int kEnd = -1;

bool is_space(int c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

RowSource::RowSource(const std::filesystem::path& path, int64_t row_limit_bytes, RowFormat format)
    : file_(File::open(path)),
      name_(path.string()),
      row_limit_(row_limit_bytes),
      file_bytes_(file_.size()),
      buffer_(new char[kCapacity]),
      window_(new char[kWindowBytes]),
      format_(format) {
  HR_CHECK(row_limit_bytes >= 1, "rows of at most {} bytes", row_limit_bytes);
  detect();
}

int64_t RowSource::memory_bytes() { return static_cast<int64_t>(kCapacity + kWindowBytes); }

// Skips a byte order mark and white space, and checks whether a list begins.
void RowSource::detect() {
  refill();
  if (end_ >= 3 && std::memcmp(buffer_.get(), "\xef\xbb\xbf", 3) == 0) scan_ = 3;
  begin_ = scan_;
  if (format_ == RowFormat::lines) return;
  skip_space();
  is_list_ = at() == '[';
  if (is_list_) advance();
}

// Reads more after the buffered bytes, discarding those before begin_; of a long row only the end is kept.
// False at the end of the file.
bool RowSource::refill() {
  if (end_ - begin_ > kHeldBytes) begin_ = end_ - kKeptEnd;
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    scan_ -= begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  const size_t room = std::min(kReadBytes, kCapacity - end_);
  const int64_t n = file_.read_some_at(file_offset_, std::as_writable_bytes(std::span(buffer_.get() + end_, room)));
  file_.drop_cache(file_offset_, n);
  file_offset_ += n;
  end_ += static_cast<size_t>(n);
  return n > 0;
}

// The byte at scan_, or kEnd.
int RowSource::at() {
  if (scan_ == end_ && !refill()) return kEnd;
  return static_cast<unsigned char>(buffer_[scan_]);
}

void RowSource::advance() {
  if (buffer_[scan_] == '\n') ++line_;
  ++scan_;
}

void RowSource::skip_space() {
  while (is_space(at())) {
    advance();
    begin_ = scan_;
  }
  begin_ = scan_;
}

void RowSource::skip_empty_lines() {
  while (at() == '\n' || at() == '\r') {
    advance();
    begin_ = scan_;
  }
  begin_ = scan_;
}

RowPlace RowSource::place_here() const { return {name_, line_, offset_of(scan_)}; }

void RowSource::begin_row() {
  begin_ = scan_;
  row_at_ = offset_of(scan_);
}

// The row's first `length` bytes, from the buffer if it holds them.
RowBytes RowSource::finish_row(int64_t length) {
  const bool held = offset_of(begin_) == row_at_;
  const char* const at = buffer_.get() + begin_;
  begin_ = scan_;
  if (held) return RowBytes(std::string_view(at, static_cast<size_t>(length)));
  return {file_, row_at_, length, std::span(window_.get(), kWindowBytes)};
}

void RowSource::refuse_length(const RowPlace& place) const {
  refuse_row(place, fmt::format("the row has more than {}", format_bytes(row_limit_)),
             "split the row, or put each JSON object on its own line");
}

bool RowSource::next(RowBytes& row, RowPlace& place) {
  if (ended_) return false;
  return is_list_ ? next_element(row, place) : next_line(row, place);
}

bool RowSource::next_line(RowBytes& row, RowPlace& place) {
  format_ == RowFormat::lines ? skip_empty_lines() : skip_space();
  if (at() == kEnd) {
    ended_ = true;
    return false;
  }
  begin_row();
  place = place_here();
  while (true) {
    const void* found = std::memchr(buffer_.get() + scan_, '\n', end_ - scan_);
    scan_ = found != nullptr ? static_cast<size_t>(static_cast<const char*>(found) - buffer_.get()) : end_;
    if (row_length() > row_limit_) refuse_length(place);
    if (found != nullptr || !refill()) break;
  }
  const bool carriage_return = format_ == RowFormat::lines && buffer_[scan_ - 1] == '\r';
  row = finish_row(row_length() - int64_t{carriage_return});
  return true;
}

bool RowSource::next_element(RowBytes& row, RowPlace& place) {
  skip_space();
  if (at() != ']' && !first_element_) {
    if (at() != ',')
      refuse_row(place_here(), "not JSON: ',' or ']' was expected after a row of the list",
                 "correct the list or write one object per line");
    advance();
    skip_space();
  } else if (at() == ']') {
    advance();
    skip_space();
    if (at() != kEnd) refuse_row(place_here(), "not JSON: text after the end of the list", "keep one list per file");
    ended_ = true;
    return false;
  }
  first_element_ = false;
  place = place_here();
  if (at() != '{')
    refuse_row(
        place,
        at() == kEnd ? "not JSON: the list does not end" : "the list holds something other than rows (JSON objects)",
        "a .json file is a list of objects, or one object per line");
  begin_row();
  skip_object(place);
  row = finish_row(row_length());
  return true;
}

// Advances past the object at scan_ by counting its brackets outside strings.
void RowSource::skip_object(const RowPlace& place) {
  int64_t depth = 0;
  bool in_string = false, escaped = false;
  do {
    const int c = at();
    if (c == kEnd) refuse_row(place, "not JSON: the row does not end", "the file is cut short; copy it again");
    if (row_length() >= row_limit_) refuse_length(place);
    if (in_string) {
      in_string = escaped || c != '"';
      escaped = !escaped && c == '\\';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    }
    advance();
  } while (depth > 0);
}

}  // namespace headroom
