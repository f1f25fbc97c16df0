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
bool is_column(std::string_view line, headroom::RowPart part) {
  const auto at = static_cast<size_t>(part.at), size = static_cast<size_t>(part.bytes);
  return at <= line.size() && at + size <= line.size() && (at == 0 || line[at - 1] == '\t') &&
         (at + size == line.size() || line[at + size] == '\t') && line.substr(at, size).find('\t') == std::string::npos;
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
      const std::string_view whole(text.data() + at, end - at);
      const RowBytes bytes{whole};
      const auto row = reader.read(bytes, {"fuzz", ++line, static_cast<int64_t>(at)});
      require(row.has_value() || line == 1);
      if (row) {
        ++rows;
        const bool pair = row->kind == RowKind::labelled_pair;
        require((pair || row->kind == RowKind::labelled) && !row->label.empty() && row->label_named);
        require(!pair || (is_column(whole, row->text_pair) && row->text_pair.at != row->text.at));
        require(is_column(whole, row->text) && whole.find(row->label.substr(0, kLabelBytes)) != std::string_view::npos);
      }
      at = end + 1;
    }
  } catch (const Error& e) {
    require(e.kind() == ErrorKind::format && std::string_view(e.what()).starts_with("fuzz:"));
  }
  return 0;
}
