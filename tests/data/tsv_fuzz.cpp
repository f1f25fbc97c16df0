// Any .tsv gives rows whose parts are columns of its lines, or an Error.
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "data/tsv_reader.h"

namespace {

void require(bool condition) {
  if (!condition) abort();
}

// Whether `part` is a whole column of `line`.
bool is_column(std::string_view line, std::string_view part) {
  const auto at = static_cast<size_t>(part.data() - line.data());
  return at <= line.size() && at + part.size() <= line.size() && (at == 0 || line[at - 1] == '\t') &&
         (at + part.size() == line.size() || line[at + part.size()] == '\t') && part.find('\t') == std::string::npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headroom;
  std::string text(reinterpret_cast<const char*>(data), size);
  TsvReader reader;
  int64_t line = 0, rows = 0;
  try {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::span<char> bytes(text.data() + at, end - at);
      const auto row = reader.read(bytes, {"fuzz", ++line, static_cast<int64_t>(at)});
      require(row.has_value() || line == 1);
      if (row) {
        ++rows;
        const std::string_view whole(bytes.data(), bytes.size());
        const bool pair = row->kind == RowKind::labelled_pair;
        require((pair || row->kind == RowKind::labelled) && !row->label.empty() && row->label_named);
        require(!pair || (is_column(whole, row->text_pair) && row->text_pair.data() != row->text.data()));
        require(is_column(whole, row->text) && is_column(whole, row->label) && row->text.data() != row->label.data());
      }
      at = end + 1;
    }
  } catch (const Error& e) {
    require(e.kind() == ErrorKind::format && std::string_view(e.what()).starts_with("fuzz:"));
  }
  return 0;
}
