#include "report/metrics_reader.h"

#include <algorithm>
#include <array>
#include <fstream>

#include "base/error.h"
#include "report/json_file.h"

namespace headroom::report {
namespace {

constexpr size_t kLongestLine = 4096;
constexpr int64_t kMostTokens = int64_t{1} << 61;  // the largest sum; it stops there

double number_or(const Field& line, std::string_view key, double otherwise) {
  return line.has(key) ? line.at(key).number() : otherwise;
}

std::optional<double> accuracy_of(const Field& line, std::string_view key) {
  return line.has(key) ? std::optional(line.at(key).number()) : std::nullopt;
}

}  // namespace

bool MetricsReader::poll() {
  std::error_code status;
  const auto size = std::filesystem::file_size(path_, status);
  if (status) return false;
  if (static_cast<int64_t>(size) < offset_) metrics_ = {}, partial_.clear(), offset_ = 0;
  if (static_cast<int64_t>(size) == offset_) return false;
  std::ifstream in(path_, std::ios::binary);
  in.seekg(offset_);
  std::array<char, 65536> buffer;
  while (in.read(buffer.data(), buffer.size()), in.gcount() > 0) {
    const std::string_view text(buffer.data(), static_cast<size_t>(in.gcount()));
    offset_ += static_cast<int64_t>(text.size());
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      partial_.append(text.substr(at, end - at));
      if (partial_.size() > kLongestLine)
        throw Error(
            ErrorKind::format,
            fmt::format("{}:{}: a line of more than {} bytes", path_.string(), metrics_.lines + 1, kLongestLine),
            "the file is damaged: remove the line");
      if (end < text.size()) take(partial_), partial_.clear();
      at = end + 1;
    }
  }
  return true;
}

void MetricsReader::take(std::string_view text) {
  ++metrics_.lines;
  const std::string place = fmt::format("{}:{}", path_.string(), metrics_.lines);
  const Json json = parse(text, place);
  const Field line(json, place);
  const int64_t step = line.at("step").bytes();
  if (line.has("eval_loss")) {
    EvalLine row{step, line.at("eval_loss").number(), accuracy_of(line, "eval_accuracy")};
    if (line.has("eval_data")) {  // one of several sets; a line without the name has the mean over all
      const std::string set = line.at("eval_data").text();
      if (metrics_.eval_sets.size() < 64 || metrics_.eval_sets.contains(set)) metrics_.eval_sets[set] = row;
      return;
    }
    metrics_.last_eval = row;
    metrics_.eval_loss.add(static_cast<double>(step), row.loss);
    if (row.accuracy) metrics_.eval_accuracy.add(static_cast<double>(step), *row.accuracy);
    return;
  }
  StepLine row;
  row.step = step;
  row.loss = line.at("loss").number();
  row.grad_norm = number_or(line, "grad_norm", 0);
  row.learning_rate = number_or(line, "learning_rate", 0);
  row.tokens = line.at("tokens").bytes();
  row.seconds = line.at("seconds").number();
  row.tokens_per_second = number_or(line, "tokens_per_second", 0);
  if (line.has("resident_bytes")) row.resident_bytes = line.at("resident_bytes").bytes();
  row.samples_per_second = number_or(line, "samples_per_second", 0);
  row.accuracy = accuracy_of(line, "accuracy");
  const double x = static_cast<double>(step);
  if (row.samples_per_second > 0) metrics_.samples_per_second.add(x, row.samples_per_second);
  if (row.accuracy) metrics_.accuracy.add(x, *row.accuracy);
  metrics_.loss.add(x, row.loss);
  metrics_.tokens_per_second.add(x, row.tokens_per_second);
  metrics_.step_seconds.add(x, row.seconds);
  if (row.resident_bytes > 0) metrics_.resident.add(x, static_cast<double>(row.resident_bytes));
  metrics_.tokens = std::min(metrics_.tokens + row.tokens, kMostTokens);
  metrics_.seconds += row.seconds;
  metrics_.last = row;
}

}  // namespace headroom::report
