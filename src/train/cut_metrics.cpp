#include "train/cut_metrics.h"

#include <span>
#include <string_view>

#include "formats/append_file.h"
#include "formats/file.h"
#include "formats/json.h"
#include "formats/line_reader.h"

namespace headroom {
namespace {

constexpr size_t kLongestLine = 4096;  // of lines written by runs, which have about 300 bytes

// Whether a line of metrics.jsonl is an object of a step up to `step`, or without a step.
bool is_up_to(const Json& row, int64_t step) {
  if (!row.is_object()) return false;
  const auto at = row.find("step");
  return at == row.end() || (at->is_number_unsigned() && at->get<uint64_t>() <= static_cast<uint64_t>(step));
}

}  // namespace

bool cut_metrics(const std::filesystem::path& file, int64_t step) {
  if (!is_file_there(file)) return false;
  LineReader lines(file);
  AppendFile kept(file);
  bool evaluated = false;
  for (std::string_view line; lines.next(line);) {
    if (line.size() > kLongestLine) continue;
    const Json row = Json::parse(line, nullptr, false);
    if (!is_up_to(row, step)) continue;
    evaluated = evaluated || (row.contains("eval_loss") && row.value("step", int64_t{0}) == step);
    kept.append(std::as_bytes(std::span(line)));
    kept.append(std::as_bytes(std::span("\n", 1)));
  }
  kept.keep();
  return evaluated;
}

}  // namespace headroom
