// doctor_estimate_cases TABLE... [--terms]: one line per case: source, name, fit or test, measured, low, predicted,
// high, parameters, the largest module's, a tied table's, devices, dtype; with --terms the terms below it.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "cases/case_table.h"

namespace headroom::doctor {
namespace {

void print_case(const MeasuredCase& c, bool terms) {
  const std::optional<ModelShape> shape = find_model_shape(c.model);
  if (!shape) throw Error(ErrorKind::usage, fmt::format("{}: model {} is unknown", c.name, c.model), "mend the table");
  const Estimate e = estimate(c.job, *shape, c.gpu, c.software);
  const double shift = predicted_bytes(c, e) - static_cast<double>(e.likely_bytes);
  const double table = static_cast<double>(shape->vocab) * static_cast<double>(shape->hidden);
  const double widest = static_cast<double>(shape->hidden) * static_cast<double>(shape->intermediate);
  fmt::print("{}\t{}\t{}\t{}\t{:.0f}\t{:.0f}\t{:.0f}\t{:.0f}\t{:.0f}\t{:.0f}\t{:.0f}\t{}\t{}\n", c.source, c.name,
             c.fit() ? "fit" : "test", c.statistic, c.bytes, static_cast<double>(e.low_bytes) + shift,
             predicted_bytes(c, e), static_cast<double>(e.high_bytes) + shift, shape->parameters,
             std::max(table, widest), shape->tied ? table : 0, c.job.gpus.value_or(1),
             c.job.weight_dtype.value_or("float32"));
  if (!terms) return;
  for (const Term& term : e.terms)
    fmt::print("#   {:>9.1f} MiB  {} [{}] {}\n", static_cast<double>(term.bytes) / 1048576.0, term.name, term.phase,
               term.how);
}

int run(int count, char** arguments) {
  bool terms = false;
  for (int i = 1; i < count; ++i) terms = terms || std::strcmp(arguments[i], "--terms") == 0;
  for (int i = 1; i < count; ++i)
    if (std::strcmp(arguments[i], "--terms") != 0)
      for (const MeasuredCase& c : read_cases(arguments[i])) print_case(c, terms);
  return 0;
}

}  // namespace
}  // namespace headroom::doctor

int main(int count, char** arguments) {
  try {
    return headroom::doctor::run(count, arguments);
  } catch (const headroom::Error& error) {
    fmt::print(stderr, "doctor_estimate_cases: {}; {}\n", error.what(), error.remedy());
    return 2;
  }
}
