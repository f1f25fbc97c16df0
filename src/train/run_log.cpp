#include "train/run_log.h"

#include <array>
#include <cmath>
#include <span>
#include <vector>

namespace headroom {

RunLog::RunLog(const ReportingOptions& reporting, const std::filesystem::path& directory, int64_t first_step)
    : logging_steps_(reporting.logging_steps), metrics_(directory / "metrics.jsonl") {
  if (reporting.report_to == "tensorboard") events_.emplace(directory / "runs", first_step);
}

void RunLog::step(const StepReport& report) {
  if (report.step % logging_steps_ != 0 && report.step != report.total_steps) return;
  metrics_.step(report);
  if (events_) step_events(report);
}

void RunLog::step_events(const StepReport& report) {
  std::array<Scalar, 8> scalars{{{"train/loss", report.loss},
                                 {"train/grad_norm", report.grad_norm},
                                 {"train/learning_rate", report.learning_rate},
                                 {"train/tokens_per_second", report.per_second(report.tokens)},
                                 {"train/memory_mib", static_cast<double>(report.resident_bytes) / (1 << 20)}}};
  size_t count = 5;
  if (report.accuracy || report.samples > 0) scalars[count++] = {"train/accuracy", report.accuracy.value_or(0)};
  if (report.samples > 0) scalars[count++] = {"train/samples_per_second", report.per_second(report.samples)};
  if (report.loss_scale) scalars[count++] = {"train/loss_scale", *report.loss_scale};
  events_->scalars(report.step, std::span(scalars).first(count));
}

void RunLog::evaluation(int64_t step, const std::string& set, const EvaluationResult& result) {
  metrics_.evaluation(step, result, set);
  if (!events_) return;
  const std::string suffix = set.empty() ? "" : "/" + set;
  const std::string tags[] = {"eval/loss" + suffix, "eval/accuracy" + suffix, "eval/perplexity" + suffix};
  std::vector<Scalar> scalars = {{tags[0], result.loss}};
  if (result.hits) scalars.push_back({tags[1], result.accuracy()});
  if (!result.classes) scalars.push_back({tags[2], std::exp(result.loss)});
  events_->scalars(step, scalars);
}

}  // namespace headroom
