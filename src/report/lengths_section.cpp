// How long the rows of the data are, and what cutting them loses.
#include <fmt/format.h>

#include <algorithm>

#include "base/count_text.h"
#include "report/markup.h"
#include "report/page.h"

namespace headroom::report {
namespace {

std::string share(int64_t part, int64_t whole) {
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(std::max<int64_t>(1, whole)));
}

// A bar as long as the share of `rows` in the rows of the largest bin, `most`.
std::string bar(int64_t rows, int64_t most) {
  return fmt::format("<svg width=\"120\" height=\"10\"><rect width=\"{:.1f}\" height=\"10\" fill=\"#0072b2\"/></svg>",
                     120.0 * static_cast<double>(rows) / static_cast<double>(std::max<int64_t>(1, most)));
}

}  // namespace

std::string lengths_section(const Run& run) {
  if (!run.lengths || run.lengths->rows == 0) return "";
  const LengthsFile& lengths = *run.lengths;
  int64_t most = 0;
  for (const auto& bin : lengths.bins) most = std::max(most, bin.rows);
  std::vector<std::vector<std::string>> rows;
  for (const auto& bin : lengths.bins)
    rows.push_back({bin.up_to ? fmt::format("up to {}", bin.up_to) : "longer", bar(bin.rows, most),
                    format_count(bin.rows), share(bin.rows, lengths.rows), share(bin.tokens, lengths.tokens)});
  std::string out =
      fmt::format("<h2>Row lengths</h2>\n<p>{} rows of {} tokens, as they were before they were cut.</p>\n",
                  format_count(lengths.rows), format_count(lengths.tokens));
  out += table({"tokens", "", "rows", "of the rows", "of the tokens"}, rows);
  rows.clear();
  for (const auto& cut : lengths.cuts)
    rows.push_back({fmt::format("{}", cut.length), format_count(cut.rows), format_count(cut.lost),
                    share(cut.lost, lengths.tokens)});
  return out + table({"cut at", "rows cut", "tokens lost", ""}, rows);
}

}  // namespace headroom::report
