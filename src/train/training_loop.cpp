#include "train/training_loop.h"

#include <cmath>

#include "base/error.h"
#include "passes/precisions.h"
#include "train/cut_metrics.h"
#include "train/milestones.h"

namespace headroom {
namespace {

bool classifies(const ModelFiles& model) { return model.spec.objective == Objective::classification; }

// Removes from metrics.jsonl what the run computes again. Returns the step whose evaluation stays, or -1: it is not
// evaluated again at the end.
int64_t cut_what_is_redone(const SavingOptions& saving, const ResumePoint& from) {
  if (!from.resumes() && !from.restarts) return -1;
  const bool evaluated = cut_metrics(saving.output_dir / "metrics.jsonl", from.state.step);
  return evaluated && from.resumes() ? from.state.step : -1;
}

LossScaler scaler_of(const TechniqueOptions& options) {
  const Precision* const precision = find_precision(options.precision);
  return precision && precision->scales_loss() ? LossScaler(options.fp16) : LossScaler();
}

}  // namespace

TrainingLoop::TrainingLoop(const TrainingParts& parts, const ResumePoint& from, int64_t total_steps)
    : parts_(parts),
      state_(from.state),
      evaluated_at_(cut_what_is_redone(parts.options.saving, from)),
      log_(parts.options.reporting, parts.options.saving.output_dir, from.state.step + 1),
      record_(write_process_json(parts.options.saving.output_dir, from.state.step + 1, total_steps)),
      saver_(parts.options, parts.model, parts.executor, parts.events, log_),
      steps_(parts.options, parts.executor, parts.port, parts.data.train, parts.targets, classifies(parts.model),
             total_steps),
      scaler_(scaler_of(parts.options.techniques)) {
  begin_state();
}

void TrainingLoop::begin_state() {
  const TrainOptions& options = parts_.options;
  if (options.evaluation.load_best_model_at_end && !saver_.has_best(state_)) {
    parts_.events.say(fmt::format(
        "the best model so far, of step {}, was not kept: only later steps count for the best", state_.best_step));
    state_.best_step = 0;
    state_.best_eval_loss = 0;
  }
  const Choices& choices = parts_.executor.plan().choices;
  state_.seed = options.seed;
  state_.techniques = choices.pins;
  state_.data_key = parts_.data.train.key();
  state_.options = options_text(options);
  begin_scaling();
}

// Continues with the scale of a checkpoint, unless the options fix another.
void TrainingLoop::begin_scaling() {
  const int64_t skipped = state_.scaling.skipped;
  if (!scaler_.scales() || !state_.scaled || parts_.options.techniques.fp16.loss_scale > 0)
    state_.scaling = scaler_.initial();
  state_.scaling.skipped = skipped;
  state_.scaled = scaler_.scales();
}

void TrainingLoop::run() {
  const SavingOptions& saving = parts_.options.saving;
  while (state_.step < steps_.total() && !stopped_by_ && !early_stop_) {
    step();
    if (evaluates_after(parts_.options.evaluation, saving, state_.step)) evaluate();
    stopped_by_ = parts_.control.stop_signal.load();
    if (saves_after(saving, state_.step) || parts_.control.save_now.exchange(false)) saver_.checkpoint(state_);
  }
}

void TrainingLoop::step() {
  StepReport report = steps_.run(state_);
  if (!std::isfinite(report.loss) || (!scaler_.scales() && !std::isfinite(report.grad_norm))) stop_or_skip(report);
  if (scaler_.scales()) move_scale(report);
  log_.step(report);
  if (parts_.events.step) parts_.events.step(report);
}

void TrainingLoop::move_scale(StepReport& report) {
  report.loss_scale = state_.scaling.scale;
  report.skipped = !std::isfinite(report.grad_norm);
  if (!scaler_.update(!report.skipped, state_.scaling))
    throw Error(ErrorKind::run,
                fmt::format("step {}: gradients are not finite at a loss scale of {}, the least: training has diverged",
                            report.step, state_.scaling.scale),
                "lower --learning-rate, or train in bf16-mixed, whose numbers have the range of fp32's");
  if (report.skipped)
    parts_.events.say(fmt::format("step {}: a gradient is not finite: the update was skipped, the loss scale is {}",
                                  report.step, state_.scaling.scale));
}

void TrainingLoop::stop_or_skip(const StepReport& report) const {
  const std::string found =
      fmt::format("step {}: loss {}, gradient norm {}", report.step, report.loss, report.grad_norm);
  if (parts_.options.optimizer.on_nan != "skip")
    throw Error(ErrorKind::run, found + ": training has diverged",
                "lower --learning-rate, add --warmup-steps, or resume from the last checkpoint");
  parts_.events.say(found + ": the update was skipped");
}

// Every set, then the mean over the target tokens of all.
void TrainingLoop::evaluate() {
  if (parts_.data.evaluation.empty()) return;
  evaluated_at_ = state_.step;
  const TrainOptions& options = parts_.options;
  const Choices& choices = parts_.executor.plan().choices;
  EvaluationResult all;
  for (const SequenceSet& set : parts_.data.evaluation) {
    const EvaluationResult result =
        evaluate_cache(parts_.executor, parts_.port, set.cache, choices.seq_length, choices.micro_batch,
                       options.data.global_batch_size, options.evaluation.eval_max_batches, parts_.evaluation_targets,
                       set.packs_or_null(), classifies(parts_.model));
    all.add(result);
    if (!set.name.empty()) tell_evaluation(set.name, result);
  }
  tell_evaluation("", all);
  check_loss(all.loss);
}

void TrainingLoop::tell_evaluation(const std::string& set, const EvaluationResult& result) {
  log_.evaluation(state_.step, set, result);
  if (parts_.events.evaluated) parts_.events.evaluated(state_.step, set, result);
}

// Keeps the best model, and ends a run that no longer improves.
void TrainingLoop::check_loss(double loss) {
  const EvaluationOptions& options = parts_.options.evaluation;
  if (record_evaluation(loss, state_) && options.load_best_model_at_end) saver_.checkpoint(state_);
  early_stop_ = early_stop_after(state_, options.early_stopping_patience, steps_.total());
  if (early_stop_)
    parts_.events.say(fmt::format("step {}: no better evaluation loss in {} evaluations, stopping", state_.step,
                                  state_.evals_since_best));
}

void TrainingLoop::finish() {
  if (!stopped_by_ && evaluated_at_ != state_.step) evaluate();
  saver_.checkpoint(state_);
  if (parts_.options.evaluation.load_best_model_at_end && !stopped_by_) saver_.load_best(state_);
  saver_.final_model();
  const std::filesystem::path& out = parts_.options.saving.output_dir;
  write_run_json(out / "run.json", summary());
  if (parts_.events.saved) parts_.events.saved(state_.step, out.string());
}

RunSummary TrainingLoop::summary() {
  const Plan& plan = parts_.executor.plan();
  RunSummary summary;
  summary.arena_planned_bytes = plan.arena_bytes;
  summary.arena_measured_bytes = parts_.executor.arena_high_water();
  summary.disk_planned_bytes = plan.disk.arena_bytes;
  summary.disk_measured_bytes = parts_.executor.arena_high_water(Tier::disk);
  summary.device_outside_arena_bytes = parts_.device.memory().outside_arena_bytes;
  summary.process_peak_rss_bytes = steps_.peak().bytes();
  summary.budget_bytes = parts_.options.machine.memory;
  summary.started_unix_ms = record_.started_unix_ms;
  summary.steps = state_.step;
  summary.total_steps = steps_.total();
  summary.stopped_by = stopped_by_;
  if (!stopped_by_) summary.early_stop = early_stop_;
  return summary;
}

}  // namespace headroom
