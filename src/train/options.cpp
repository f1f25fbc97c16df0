#include "train/options.h"

#include "base/error.h"
#include "optim/lora_plus.h"
#include "options/option_checks.h"

namespace headroom {
namespace {

using option_checks::at_least, option_checks::one_of, option_checks::real_in;

void check_evaluation_counts(const EvaluationOptions& o) {
  at_least("eval-steps", o.eval_steps, 0);
  at_least("eval-max-batches", o.eval_max_batches, 0);
  at_least("early-stopping-patience", o.early_stopping_patience, 0);
}

void check_schedule(const ScheduleOptions& o) {
  at_least("max-steps", o.max_steps, 0);
  at_least("warmup-steps", o.warmup_steps, 0);
  real_in("num-train-epochs", o.num_train_epochs, 0, 1e9);
  real_in("learning-rate", o.learning_rate, 0, 1e3);
  real_in("min-lr", o.min_lr, 0, 1e3);
  one_of("lr-scheduler-type", o.lr_scheduler_type, {"linear", "cosine", "constant"});
}

void check_optimizer(const OptimizerOptions& o) {
  real_in("weight-decay", o.weight_decay, 0, 1e3);
  real_in("adam-beta1", o.adam_beta1, 0, 0.9999999999);
  real_in("adam-beta2", o.adam_beta2, 0, 0.9999999999);
  real_in("adam-epsilon", o.adam_epsilon, 0, 1);
  one_of("on-nan", o.on_nan, {"stop", "skip"});
  optimizer_settings(o);
}

}  // namespace

std::string saved_dtype(const SavingOptions& saving, const TechniqueOptions& techniques) {
  return saving.save_dtype.empty() ? master_dtype(techniques) : saving.save_dtype;
}

std::string_view optimizer_in_8_bits(const OptimizerOptions& options) {
  return find_optimizer(options.optim).in_8_bits();
}

OptimizerSettings optimizer_settings(const OptimizerOptions& o) {
  const OptimizerOptions usual;
  std::map<std::string, double, std::less<>> familiar;
  if (o.adam_beta1 != usual.adam_beta1) familiar["--adam-beta1"] = o.adam_beta1;
  if (o.adam_beta2 != usual.adam_beta2) familiar["--adam-beta2"] = o.adam_beta2;
  if (o.adam_epsilon != usual.adam_epsilon) familiar["--adam-epsilon"] = o.adam_epsilon;
  return {o.optim, o.optim_args, familiar};
}

void check_options(const TrainOptions& o) {
  check_options(o.data);
  check_schedule(o.schedule);
  check_evaluation_counts(o.evaluation);
  at_least("save-steps", o.saving.save_steps, 0);
  at_least("save-total-limit", o.saving.save_total_limit, 1);
  at_least("logging-steps", o.reporting.logging_steps, 1);
  check_options(o.machine);
  one_of("dropout", o.model.dropout, {"config", "off"});
  one_of("report-to", o.reporting.report_to, {"none", "tensorboard"});
  one_of("save-dtype", saved_dtype(o.saving, o.techniques), {"float32", "bfloat16", "float16"});
  check_optimizer(o.optimizer);
  check_options(o.techniques);
  if (const double ratio = lora_plus_ratio(optimizer_settings(o.optimizer)); ratio != 1 && o.techniques.lora.rank == 0)
    throw Error(ErrorKind::usage, fmt::format("--optim-args loraplus_lr_ratio={} without adapters", ratio),
                "add --lora-r 16, or leave it out");
  if (o.optimizer.on_nan == "skip" && o.techniques.max_grad_norm == 0)
    throw Error(ErrorKind::usage, "--on-nan skip needs the global gradient norm before the update",
                "give --max-grad-norm above 0");
}

}  // namespace headroom
