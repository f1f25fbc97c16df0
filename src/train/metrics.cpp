#include "train/metrics.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "formats/atomic_dir.h"

namespace headroom {

Metrics::Metrics(const std::filesystem::path& path)
    : descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0)
    throw Error(ErrorKind::run, fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)),
                "check --output-dir");
}

Metrics::~Metrics() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Metrics::write(size_t bytes) {
  if (::write(descriptor_, line_.data(), bytes) != static_cast<ssize_t>(bytes))
    throw Error(ErrorKind::run, fmt::format("cannot write metrics.jsonl: {}", std::strerror(errno)),
                "free disk space, then resume from the last checkpoint");
}

void Metrics::step(const StepReport& r) {
  char more[224] = "";
  char* to = more;
  const auto room = [&] { return static_cast<size_t>(more + sizeof more - 1 - to); };
  if (r.accuracy) to = fmt::format_to_n(to, room(), ", \"accuracy\": {:.6f}", *r.accuracy).out;
  if (r.samples > 0)
    to = fmt::format_to_n(to, room(), ", \"samples\": {}, \"samples_per_second\": {:.2f}", r.samples,
                          r.per_second(r.samples))
             .out;
  if (r.loss_scale)
    to = fmt::format_to_n(to, room(), ", \"loss_scale\": {}, \"skipped\": {}", *r.loss_scale, r.skipped).out;
  *to = '\0';
  const auto end =
      fmt::format_to_n(line_.data(), line_.size(),
                       "{{\"step\": {}, \"loss\": {}, \"grad_norm\": {}, \"learning_rate\": {}, "
                       "\"tokens\": {}, \"seconds\": {:.6f}, \"tokens_per_second\": {:.2f}, "
                       "\"resident_bytes\": {}{}}}\n",
                       r.step, std::isfinite(r.loss) ? r.loss : 0, std::isfinite(r.grad_norm) ? r.grad_norm : 0,
                       r.learning_rate, r.tokens, r.seconds, r.per_second(r.tokens), r.resident_bytes, more);
  write(std::min(end.size, line_.size()));
}

void Metrics::evaluation(int64_t step, const EvaluationResult& result, std::string_view set) {
  const double loss = result.loss;
  char accuracy[64] = "";
  if (result.hits)
    *fmt::format_to_n(accuracy, sizeof accuracy - 1, ", \"eval_accuracy\": {}", result.accuracy()).out = '\0';
  const auto end = fmt::format_to_n(line_.data(), line_.size(),
                                    "{{\"step\": {}, \"eval_loss\": {}, \"eval_perplexity\": {}{}{}{}{}}}\n", step,
                                    std::isfinite(loss) ? loss : 0, std::isfinite(std::exp(loss)) ? std::exp(loss) : 0,
                                    accuracy, set.empty() ? "" : ", \"eval_data\": \"", set, set.empty() ? "" : "\"");
  write(std::min(end.size, line_.size()));
}

void Metrics::sync() { ::fdatasync(descriptor_); }

namespace {

// A member of the object if there is one.
std::string early_stop_member(const std::optional<EarlyStop>& stop) {
  if (!stop) return "";
  return fmt::format(", \"early_stop\": {{\"evaluations\": {}, \"best_step\": {}, \"best_eval_loss\": {}}}",
                     stop->evaluations, stop->best_step, stop->best_eval_loss);
}

std::string number_or_null(const std::optional<int64_t>& number) { return number ? std::to_string(*number) : "null"; }

}  // namespace

void write_run_json(const std::filesystem::path& path, const RunSummary& s) {
  write_text_durably(
      path,
      fmt::format("{{\"arena_planned_bytes\": {}, \"arena_measured_bytes\": {}, \"disk_planned_bytes\": {}, "
                  "\"disk_measured_bytes\": {}, \"device_outside_arena_bytes\": {}, \"process_peak_rss_bytes\": {}, "
                  "\"budget_bytes\": {}, "
                  "\"started_unix_ms\": {}, \"steps\": {}, \"total_steps\": {}, "
                  "\"stopped_by\": {}{}}}\n",
                  s.arena_planned_bytes, s.arena_measured_bytes, s.disk_planned_bytes, s.disk_measured_bytes,
                  number_or_null(s.device_outside_arena_bytes), s.process_peak_rss_bytes, s.budget_bytes,
                  s.started_unix_ms, s.steps, s.total_steps, s.stopped_by, early_stop_member(s.early_stop)));
}

}  // namespace headroom
