#include "train/options.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace headroom {
namespace {

[[noreturn]] void refuse(std::string_view option, std::string_view value, std::string_view wanted) {
  throw Error(ErrorKind::usage, fmt::format("--{} {} is out of range", option, value), fmt::format("give {}", wanted));
}

void at_least(std::string_view option, int64_t value, int64_t least) {
  if (value < least || value > (int64_t{1} << 40))
    refuse(option, std::to_string(value), fmt::format("a whole number of at least {}", least));
}

void real_in(std::string_view option, double value, double least, double most) {
  if (!(value >= least && value <= most))
    refuse(option, fmt::format("{}", value), fmt::format("a number from {} to {}", least, most));
}

void one_of(std::string_view option, const std::string& value, std::initializer_list<std::string_view> words) {
  if (std::find(words.begin(), words.end(), value) == words.end())
    throw Error(ErrorKind::usage, fmt::format("--{} '{}' is not known", option, value),
                fmt::format("one of {}", fmt::join(words, ", ")));
}

// An option of adapters where none are trained would be passed over in silence, and all weights trained.
void refuse_settings_without_adapters(const LoraOptions& lora) {
  const LoraOptions unset;
  const char* given = lora.alpha != unset.alpha                       ? "lora-alpha"
                      : lora.dropout != unset.dropout                 ? "lora-dropout"
                      : lora.rank_stabilised != unset.rank_stabilised ? "lora-rslora"
                      : lora.targets != unset.targets                 ? "lora-target-modules"
                      : !lora.modules_to_save.empty()                 ? "modules-to-save"
                                                                      : nullptr;
  if (given)
    throw Error(ErrorKind::usage, fmt::format("--{} without --lora-r: no adapters are trained", given),
                "add --lora-r 16, or leave it out");
}

}  // namespace

std::string master_dtype(const TrainOptions& options) {
  return options.precision == "bf16-true" ? "bfloat16" : "float32";
}

std::string saved_dtype(const TrainOptions& options) {
  return options.save_dtype.empty() ? master_dtype(options) : options.save_dtype;
}

OptimizerSettings optimizer_settings(const TrainOptions& o) {
  const TrainOptions usual;
  std::map<std::string, double, std::less<>> familiar;
  if (o.adam_beta1 != usual.adam_beta1) familiar["--adam-beta1"] = o.adam_beta1;
  if (o.adam_beta2 != usual.adam_beta2) familiar["--adam-beta2"] = o.adam_beta2;
  if (o.adam_epsilon != usual.adam_epsilon) familiar["--adam-epsilon"] = o.adam_epsilon;
  return {o.optim, o.optim_args, familiar};
}

void check_options(const TrainOptions& o) {
  at_least("global-batch-size", o.global_batch_size, 1);
  at_least("micro-batch-size", o.micro_batch_size, 0);
  at_least("max-seq-length", o.max_seq_length, 0);
  if (o.max_seq_length == 1) refuse("max-seq-length", "1", "at least 2: a token is predicted from the one before it");
  at_least("max-steps", o.max_steps, 0);
  at_least("warmup-steps", o.warmup_steps, 0);
  at_least("eval-steps", o.eval_steps, 0);
  at_least("eval-max-batches", o.eval_max_batches, 0);
  at_least("save-steps", o.save_steps, 0);
  at_least("save-total-limit", o.save_total_limit, 1);
  at_least("logging-steps", o.logging_steps, 1);
  at_least("early-stopping-patience", o.early_stopping_patience, 0);
  at_least("threads", o.threads, 0);
  at_least("lora-r", o.lora.rank, 0);
  if (o.lora.rank > 8192) refuse("lora-r", std::to_string(o.lora.rank), "at most 8192");
  real_in("lora-alpha", o.lora.alpha, 0, 1e6);
  real_in("lora-dropout", o.lora.dropout, 0, 0.99);
  if (o.lora.rank == 0) refuse_settings_without_adapters(o.lora);
  if (o.lora.rank > 0 && !o.freeze.empty())
    throw Error(ErrorKind::usage, "--freeze and --lora-r together", "adapters freeze all other weights by themselves");
  real_in("num-train-epochs", o.num_train_epochs, 0, 1e9);
  real_in("learning-rate", o.learning_rate, 0, 1e3);
  real_in("min-lr", o.min_lr, 0, 1e3);
  real_in("weight-decay", o.weight_decay, 0, 1e3);
  real_in("adam-beta1", o.adam_beta1, 0, 0.9999999999);
  real_in("adam-beta2", o.adam_beta2, 0, 0.9999999999);
  real_in("mlm-probability", o.mlm_probability, 0.001, 1);
  real_in("adam-epsilon", o.adam_epsilon, 0, 1);
  real_in("max-grad-norm", o.max_grad_norm, 0, 1e30);
  one_of("lr-scheduler-type", o.lr_scheduler_type, {"linear", "cosine", "constant"});
  one_of("dropout", o.dropout, {"config", "off"});
  one_of("arithmetic", o.arithmetic, {"free", "fixed"});
  one_of("on-nan", o.on_nan, {"stop", "skip"});
  one_of("report-to", o.report_to, {"none", "tensorboard"});
  one_of("save-dtype", saved_dtype(o), {"float32", "bfloat16"});
  optimizer_settings(o);
  one_of("matmul-precision", o.matmul_precision, {"highest", "high", "medium"});
  if (o.precision == "16-mixed" || o.precision == "16-true")
    throw Error(ErrorKind::usage, fmt::format("--precision {} is not built in this version", o.precision),
                "use 32-true, bf16-mixed or bf16-true");
  one_of("precision", o.precision, {"32-true", "bf16-mixed", "bf16-true"});
  if (o.on_nan == "skip" && o.max_grad_norm == 0)
    throw Error(ErrorKind::usage, "--on-nan skip needs the global gradient norm before the update",
                "give --max-grad-norm above 0");
}

}  // namespace headroom
