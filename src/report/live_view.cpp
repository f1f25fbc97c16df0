#include "report/live_view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "base/bytes.h"
#include "base/count_text.h"
#include "report/markup.h"

namespace headroom::report {
namespace {

namespace fs = std::filesystem;

constexpr auto kSilence = std::chrono::minutes(10);

std::string own_host() {
  char host[65] = {};
  ::gethostname(host, sizeof host - 1);
  return host;
}

fs::file_time_type newest_write(const fs::path& directory) {
  fs::file_time_type newest = fs::file_time_type::min();
  for (const char* name : {"metrics.jsonl", "process.json"}) {
    std::error_code status;
    const auto time = fs::last_write_time(directory / name, status);
    if (!status) newest = std::max(newest, time);
  }
  return newest;
}

std::string bar(double share, size_t width, const char* full = "█") {
  std::string out;
  for (size_t i = 0; i < width; ++i)
    out += (static_cast<double>(i) + 0.5) / static_cast<double>(width) < share ? full : "░";
  return out;
}

// A curve in one line.
std::string sparkline(const Series& series, size_t width) {
  constexpr const char* levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const auto& points = series.points();
  const double least = series.least(), range = std::max(1e-12, series.most() - least);
  std::string out;
  const size_t columns = std::min(width, points.size());
  for (size_t i = 0; i < columns; ++i) {
    const double value = points[i * points.size() / columns].mean();
    out += levels[static_cast<size_t>(std::clamp((value - least) / range * 7.999, 0.0, 7.0))];
  }
  return out;
}

// Names from files may hold anything: control characters would reach the terminal.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) out += static_cast<unsigned char>(c) < ' ' || c == 0x7f ? '?' : c;
  return out;
}

// At most `columns` characters of a line of UTF-8.
std::string cut(const std::string& line, size_t columns) {
  size_t seen = 0, at = 0;
  for (; at < line.size(); ++at)
    if ((static_cast<unsigned char>(line[at]) & 0xc0) != 0x80 && seen++ == columns) break;
  return line.substr(0, at);
}

// "0.3012, accuracy 0.912"
std::string evaluation_text(const EvalLine& line) {
  return fmt::format("{:.4f}", line.loss) + (line.accuracy ? fmt::format(", accuracy {:.3f}", *line.accuracy) : "");
}

}  // namespace

bool is_alive(const ProcessFile& process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process.pid));
  std::string text;
  if (!std::getline(file, text)) return false;
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return false;
  if (text[name_end + 2] == 'Z' || text[name_end + 2] == 'X') return false;
  size_t at = name_end;
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  return at != std::string::npos &&
         (process.start_ticks == 0 || std::strtoll(text.c_str() + at, nullptr, 10) == process.start_ticks);
}

LiveView::LiveView(fs::path directory) : directory_(std::move(directory)), metrics_(directory_ / "metrics.jsonl") {}

bool LiveView::poll() {
  const RunState before = state_;
  // The state of the process is read before its files, so that what it wrote last is seen.
  const auto process = read_process(directory_);
  const bool again = process && (!process_ || process_->started_unix_ms != process->started_unix_ms);
  process_ = process;
  if (!plan_ || again) plan_ = read_plan(directory_);
  const RunState now = run_state();
  const bool grew = metrics_.poll();
  end_ = read_end(directory_);
  if (end_ && process_ && end_->started_unix_ms != process_->started_unix_ms) end_.reset();
  state_ = end_ ? end_->stopped_by ? RunState::stopped : RunState::finished : now;
  if (state_ == RunState::starting && metrics_.metrics().last) state_ = RunState::running;
  return grew || again || state_ != before;
}

RunState LiveView::run_state() const {
  if (!plan_) return RunState::absent;
  if (!process_) return RunState::starting;
  if (process_->host == own_host()) return is_alive(*process_) ? RunState::starting : RunState::died;
  return fs::file_time_type::clock::now() - newest_write(directory_) > kSilence ? RunState::silent : RunState::starting;
}

double LiveView::seconds_left() const {
  const auto& points = metrics_.metrics().step_seconds.points();
  if (points.empty() || !metrics_.metrics().last) return 0;
  // The latest tenth of the steps predicts the next ones best.
  double sum = 0;
  size_t count = 0;
  for (size_t i = points.size() - std::max<size_t>(1, points.size() / 10); i < points.size(); ++i)
    sum += points[i].sum, count += points[i].count;
  return sum / static_cast<double>(count) *
         static_cast<double>(std::max<int64_t>(0, total_steps() - metrics_.metrics().last->step));
}

std::string LiveView::verdict() const {
  const int64_t step = metrics_.metrics().last ? metrics_.metrics().last->step : 0;
  switch (state_) {
    case RunState::absent:
      return fmt::format("waiting: no run in {} yet", plain(directory_.string()));
    case RunState::starting:
      return "starting: no step yet";
    case RunState::running:
      return fmt::format("running, {} left", duration(seconds_left()));
    case RunState::finished:
      if (end_->early) return fmt::format("ended early after step {} of {}", step, end_->total_steps);
      return fmt::format("finished after step {}", step);
    case RunState::stopped:
      return fmt::format("stopped by signal {} after step {}; it can be resumed", end_->stopped_by, step);
    case RunState::died:
      return fmt::format("died: process {} is gone, its last step was {}", process_->pid, step);
    case RunState::silent:
      return fmt::format("silent: {} has written nothing for 10 minutes", plain(process_->host));
  }
  return "";
}

std::string LiveView::line() const {
  const Metrics& metrics = metrics_.metrics();
  if (!metrics.last) return verdict();
  const StepLine& last = *metrics.last;
  std::string out = fmt::format("step {}/{}  loss {:.4f}", last.step, total_steps(), last.loss);
  if (last.accuracy) out += fmt::format("  accuracy {:.3f}", *last.accuracy);
  if (metrics.last_eval) out += "  eval " + evaluation_text(*metrics.last_eval);
  if (metrics.classifies()) out += fmt::format("  {:.1f} samples/s", last.samples_per_second);
  out += fmt::format("  {:.0f} tok/s", last.tokens_per_second);
  if (plan_)
    out += fmt::format("  mem {} of plan {}, budget {}", format_bytes(last.resident_bytes), format_bytes(plan_->peak),
                       format_bytes(plan_->budget));
  out += "  " + verdict();
  return end_ && end_->early ? out + ": " + end_->early->reason() : out;
}

std::string LiveView::screen(size_t columns) const {
  const Metrics& metrics = metrics_.metrics();
  const size_t width = std::clamp<size_t>(columns > 28 ? columns - 28 : 8, 8, 60);
  std::string out;
  const auto add = [&](const std::string& text) { out += cut(text, columns) + "\n"; };
  add(fmt::format("{}  {}", plain(directory_.string()), verdict()));
  if (end_ && end_->early) add(end_->early->reason());
  if (!plan_) return out;
  add(fmt::format("{}, {} parameters, {}, micro-batch {} x {}, sequence {}", plain(plan_->model),
                  format_count(plan_->parameters), plain(plan_->precision), plan_->micro_batch, plan_->accumulation,
                  plan_->seq_length));
  const double budget = static_cast<double>(std::max<int64_t>(1, plan_->budget));
  const int64_t used = end_ ? end_->peak_resident : metrics.last ? metrics.last->resident_bytes : 0;
  add(fmt::format("{:<10} {:>10} {}", "budget", format_bytes(plan_->budget), bar(1, width)));
  add(fmt::format("{:<10} {:>10} {}", "plan", format_bytes(plan_->peak),
                  bar(static_cast<double>(plan_->peak) / budget, width)));
  add(fmt::format("{:<10} {:>10} {}", end_ ? "used" : "in use", used > 0 ? format_bytes(used) : "-",
                  bar(static_cast<double>(used) / budget, width)));
  if (!metrics.last) return out;
  const StepLine& last = *metrics.last;
  const double share = static_cast<double>(last.step) / static_cast<double>(std::max<int64_t>(1, total_steps()));
  add(fmt::format("{:<10} {:>10} {} {:.0f}%", "step", fmt::format("{}/{}", last.step, total_steps()), bar(share, width),
                  100 * share));
  add(fmt::format("{:<10} {:>10} {}", "loss", fmt::format("{:.4f}", last.loss), sparkline(metrics.loss, width)));
  if (last.accuracy)
    add(fmt::format("{:<10} {:>10} {}", "accuracy", fmt::format("{:.3f}", *last.accuracy),
                    sparkline(metrics.accuracy, width)));
  if (metrics.last_eval)
    add(fmt::format("{:<10} {:>10} at step {}", "evaluation", evaluation_text(*metrics.last_eval),
                    metrics.last_eval->step));
  if (metrics.classifies())
    add(fmt::format("{:<10} {:>10} {}", "samples/s", fmt::format("{:.1f}", last.samples_per_second),
                    sparkline(metrics.samples_per_second, width)));
  add(fmt::format("{:<10} {:>10} {}", "tokens/s", fmt::format("{:.0f}", last.tokens_per_second),
                  sparkline(metrics.tokens_per_second, width)));
  add(fmt::format("{:<10} {:>10} predicted {}", "step time", duration(last.seconds), duration(plan_->step_seconds)));
  add(fmt::format("{:<10} {:>10} learning rate {:.2e}", "norm", fmt::format("{:.3g}", last.grad_norm),
                  last.learning_rate));
  return out;
}

}  // namespace headroom::report
