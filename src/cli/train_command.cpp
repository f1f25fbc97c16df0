#include <csignal>

#include "arguments/train_options.h"
#include "base/bytes.h"
#include "base/error.h"
#include "cli/refuse.h"
#include "cli/run_file_options.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "engine/processor_remark.h"
#include "engine/train_model.h"

namespace headroom {
namespace {

std::string format_step(double seconds) {
  return seconds < 1 ? fmt::format("{:.1f} ms", seconds * 1000) : fmt::format("{:.2f} s", seconds);
}

// With a comma; empty if the loss has no chunks of rows.
std::string loss_of(const Choices& choices) {
  const int64_t rows = choices.integer("loss_chunk_rows");
  return rows > 0 ? fmt::format(", loss chunk {}", rows) : std::string();
}

std::string plan_line(const Plan& plan) {
  return fmt::format(
      "plan: peak {} of {}: arena {}, process {}{}; micro-batch {} x {}{}, recompute {}; predicted step "
      "{} (profile {})",
      format_bytes(plan.peak_bytes), format_bytes(plan.budget_bytes), format_bytes(plan.arena_bytes),
      format_bytes(plan.process.total()),
      plan.disk.arena_bytes > 0 ? fmt::format(", {} on disk", format_bytes(plan.disk.arena_bytes)) : "",
      plan.choices.micro_batch, plan.choices.accumulation, loss_of(plan.choices), plan.choices.text("recompute"),
      format_step(plan.step_seconds), plan.profile.substr(0, plan.profile.find('#')));
}

int run_train(const TrainArguments& arguments) {
  const TrainOptions options = resolve(arguments);
  std::unique_ptr<Progress> progress;
  TrainEvents events;
  const auto say = [&](const std::string& text) {
    progress ? progress->line(text) : void(arguments.quiet ? 0 : (print_note(text), 0));
  };
  events.planned = [&](const Plan& plan) {
    if (!plan.feasible) return;
    say(plan_line(plan));
    if (!arguments.quiet) print_remark(processor_remark(options.machine.device, plan.facts.threads));
    progress = std::make_unique<Progress>(arguments.quiet, plan);
  };
  events.note = say;
  events.step = [&](const StepReport& report) { progress->step(report); };
  events.evaluated = [&](int64_t step, const std::string& set, const EvaluationResult& result) {
    say(fmt::format("step {}: evaluation {}{}", step, result.describe(), set.empty() ? "" : " on " + set));
  };
  events.saved = [&](int64_t step, const std::string& directory) {
    say(fmt::format("step {}: saved {}", step, directory));
  };
  RunControl& control = install_signal_handlers();
  const TrainResult result = train_model(options, events, control);
  if (progress) progress->end();
  if (!result.plan.feasible) return refuse(result.plan);
  return result.stopped_by == 0 ? 0 : 128 + result.stopped_by;
}

}  // namespace

Command train_command() {
  return {"train", "train inside a memory budget: plan, refuse or run, evaluate, save, resume",
          [](CLI::App& app) {
            auto arguments = std::make_shared<TrainArguments>();
            add_train_options(app, *arguments);
            return [arguments] { return run_train(*arguments); };
          },
          expand_run_file};
}

}  // namespace headroom
