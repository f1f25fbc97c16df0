// doctor_estimate_cases TABLE... [--terms] [--constants=F,E,G,A,S,R]: the constants are other fitted constants, in the
// order of fitted_constants.h. Prints one line per case: source, name, fit or test, measured, low, predicted, high,
// parameters, the largest module's, a tied table's, devices, dtype; with --terms followed by the terms.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "cases/case_table.h"
#include "doctor/model/train_estimate.h"

namespace headroom::doctor {
namespace {

void print_case(const MeasuredCase& c, bool terms, const FittedConstants& fitted) {
  const std::optional<ModelShape> shape = find_model_shape(c.model);
  if (!shape)
    throw Error(ErrorKind::usage, fmt::format("{}: model {} is unknown", c.name, c.model), "correct the table");
  const Estimate e = estimate_training(c.job, *shape, c.gpu, c.software, fitted);
  const double shift = predicted_bytes(c, e) - static_cast<double>(e.likely_bytes);
  const double table = static_cast<double>(shape->vocab) * static_cast<double>(shape->hidden);
  const double widest = static_cast<double>(shape->hidden) * static_cast<double>(shape->intermediate);
  fmt::print("{}\t{}\t{}\t{}\t{:.0f}\t{:.0f}\t{:.0f}\t{:.0f}\t{:.0f}\t{:.0f}\t{:.0f}\t{}\t{}\n", c.source, c.name,
             c.fit() ? "fit" : "test", c.statistic, c.bytes, static_cast<double>(e.low_bytes) + shift,
             predicted_bytes(c, e), static_cast<double>(e.high_bytes) + shift, shape->parameters,
             std::max(table, widest), shape->tied ? table : 0, c.job.devices.gpus.value_or(1),
             c.job.precision.weights.value_or("float32"));
  if (!terms) return;
  for (const Term& term : e.terms)
    fmt::print("#   {:>9.1f} MiB  {} [{}] {}\n", static_cast<double>(term.bytes) / 1048576.0, term.name, term.phase,
               term.how);
}

FittedConstants constants_of(const std::string& list) {
  FittedConstants c;
  std::stringstream stream(list);
  char comma = 0;
  stream >> c.fragmentation >> comma >> c.eager_fragmentation >> comma >> c.heap_gradients >> comma >>
      c.heap_activations >> comma >> c.heap_scores >> comma >> c.heap_freed;
  if (!stream) throw Error(ErrorKind::usage, "--constants=" + list + " is not a list of six numbers", "give all six");
  return c;
}

int run(int count, char** arguments) {
  bool terms = false;
  FittedConstants fitted;
  std::vector<std::string> tables;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--terms")
      terms = true;
    else if (argument.rfind("--constants=", 0) == 0)
      fitted = constants_of(argument.substr(12));
    else
      tables.push_back(argument);
  }
  for (const std::string& table : tables)
    for (const MeasuredCase& c : read_cases(table)) print_case(c, terms, fitted);
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
