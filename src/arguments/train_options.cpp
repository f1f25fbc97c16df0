#include "arguments/train_options.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "engine/budget.h"
#include "optim/optimizer.h"
#include "planner/pipeline.h"

namespace headroom {
namespace {

// The batch size of transformers where only the accumulation steps are given.
constexpr int64_t kDeviceBatch = 8;

void add_data_options(CLI::App& app, BatchOptions& o, EvaluationOptions& evaluation) {
  app.add_option("--data", o.train, "training data: .txt, .jsonl, .json or .tsv; repeatable")->type_name("FILE");
  app.add_option("--eval-data", evaluation.data, "evaluation data, with an optional name for the set; repeatable")
      ->type_name("[NAME=]FILE");
  scalar(app, "--eval-steps", evaluation.eval_steps, "evaluate every N steps (default: at each save)");
  scalar(app, "--eval-max-batches", evaluation.eval_max_batches, "batches per evaluation (default: all)");
  scalar(app, "--global-batch-size", o.global_batch_size, "sequences per optimizer step")->capture_default_str();
  scalar(app, "--micro-batch-size", o.micro_batch_size, "sequences computed at once (default: the planner chooses)");
  scalar(app, "--max-seq-length", o.max_seq_length,
         "tokens per sequence (default: 512, or the model's positions if fewer)");
  scalar(app, "--mlm-probability", o.mlm_probability, "masked-LM models: share of tokens to predict")
      ->capture_default_str();
  scalar(app, "--shuffle", o.shuffle, "visit sequences in a seeded random order")->capture_default_str();
}

// Each optimizer with its usual settings.
std::string optimizer_args_help() {
  std::string text = "settings of the optimizer:";
  for (const std::string_view name : optimizer_names()) {
    const std::string usual = OptimizerSettings(name, "").text();
    text += fmt::format("{} {} {}", text.ends_with(':') ? "" : ";", name, usual.empty() ? "none" : usual);
  }
  return text;
}

void add_schedule_options(CLI::App& app, ScheduleOptions& o) {
  scalar(app, "--max-steps", o.max_steps, "optimizer steps; -1: as many as --num-train-epochs needs");
  scalar(app, "--num-train-epochs", o.num_train_epochs, "epochs, when --max-steps is not given")->capture_default_str();
  scalar(app, "--learning-rate", o.learning_rate, "peak learning rate")->capture_default_str();
  scalar(app, "--lr-scheduler-type", o.lr_scheduler_type, "linear, cosine or constant")->capture_default_str();
  scalar(app, "--warmup-steps", o.warmup_steps, "steps of linear warm-up")->capture_default_str();
  scalar(app, "--min-lr", o.min_lr, "learning rate at the end of the schedule")->capture_default_str();
}

void add_optimizer_options(CLI::App& app, OptimizerOptions& o) {
  scalar(app, "--weight-decay", o.weight_decay, "weight decay, on matrices and embeddings only")->capture_default_str();
  scalar(app, "--optim", o.optim, optimizers_text())->capture_default_str();
  scalar(app, "--optim-args", o.optim_args, optimizer_args_help())->type_name("K=V,...");
  scalar(app, "--adam-beta1", o.adam_beta1, "decay of the first moment")->capture_default_str();
  scalar(app, "--adam-beta2", o.adam_beta2, "decay of the second moment")->capture_default_str();
  scalar(app, "--adam-epsilon", o.adam_epsilon, "added to the root of the second moment")->capture_default_str();
}

// What is trained, and in which precision.
void add_arithmetic_options(CLI::App& app, TechniqueOptions& o) {
  scalar(app, "--max-grad-norm", o.max_grad_norm, "clip the global gradient norm; 0 = never")->capture_default_str();
  scalar(app, "--lora-r", o.lora.rank,
         "rank of the adapters to train on top of frozen weights (default: 0, no adapters)");
  scalar(app, "--lora-alpha", o.lora.alpha, "the adapters are scaled by alpha / r")->capture_default_str();
  scalar(app, "--lora-rslora", o.lora.rank_stabilised, "scale the adapters by alpha / sqrt(r) instead")
      ->capture_default_str();
  scalar(app, "--use-dora", o.lora.decomposed, "DoRA: train the lengths of the adapted weights' rows too")
      ->capture_default_str();
  scalar(app, "--lora-dropout", o.lora.dropout, "dropout on the adapters' inputs, in training")->capture_default_str();
  app.add_option("--lora-target-modules", o.lora.targets,
                 "modules and experts that get adapters, by parts of their names (default: all-linear)")
      ->type_name("PATTERN");
  app.add_option("--modules-to-save", o.lora.modules_to_save,
                 "modules to train in full besides the adapters; repeatable")
      ->type_name("PATTERN");
  app.add_option("--freeze", o.freeze, "weights not to train, by parts of their names: layers.0-5; repeatable")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  scalar(app, "--precision", o.precision, "32-true, bf16-mixed, bf16-true, 16-mixed or 16-true")->capture_default_str();
  scalar(
      app, "--matmul-precision", o.matmul_precision,
      "products of fp32 matrices: highest (fp32; on AMX as sums of three bf16 parts, which cannot hold finite values "
      "above 3.396e38 or parts below 2^-126), high (3 x bf16) or medium (bf16); without AMX high and medium round in "
      "the same way but are no faster than fp32; fp8, on a GPU of compute capability 8.9 or later: large products of "
      "bf16 matrices in eight bits (lossy)")
      ->capture_default_str();
  scalar(
      app, "--attention-order", o.attention_order,
      "fixed, or any: on a GPU in bf16 the gradient of attention may sum in any order, which is faster, but two runs "
      "agree only to rounding")
      ->capture_default_str();
}

void add_loss_scale_options(CLI::App& app, LossScaleOptions& o) {
  scalar(app, "--fp16-preset", o.preset, "rules of the dynamic loss scale of 16-mixed and 16-true: torch or deepspeed")
      ->capture_default_str();
  scalar(app, "--fp16-loss-scale", o.loss_scale, "fixed loss scale (0: dynamic)")->capture_default_str();
  scalar(app, "--fp16-initial-scale-power", o.initial_scale_power, "log2 of the first loss scale (default: 16)");
  scalar(app, "--fp16-loss-scale-window", o.loss_scale_window,
         "steps without overflow before the scale doubles (default: torch 2000, deepspeed 1000)");
  scalar(app, "--fp16-hysteresis", o.hysteresis,
         "steps with overflow before the scale halves (default: torch 1, deepspeed 2)");
  scalar(app, "--fp16-min-loss-scale", o.min_loss_scale,
         "training stops if a step overflows at this scale (default: torch 2^-24, deepspeed 1)");
}

void add_run_options(CLI::App& app, TrainOptions& o) {
  scalar(app, "--logging-steps", o.reporting.logging_steps, "write metrics every N steps")->capture_default_str();
  scalar(app, "--save-steps", o.saving.save_steps,
         "write a checkpoint every N steps; always at the end and on Ctrl-C, SIGTERM and SIGUSR1");
  scalar(app, "--save-total-limit", o.saving.save_total_limit, "how many checkpoints to keep")->capture_default_str();
  scalar(app, "--save-dtype", o.saving.save_dtype,
         "dtype of the final model: float32, bfloat16 or float16 (default: as trained)");
  scalar(app, "--resume-from-checkpoint", o.saving.resume_from_checkpoint,
         "resume from this checkpoint; true: from the newest in --output-dir")
      ->type_name("[true|DIR]");
  scalar(app, "--output-dir", o.saving.output_dir, "where the model, checkpoints and metrics go (plan: unused)")
      ->type_name("DIR");
  scalar(app, "--early-stopping-patience", o.evaluation.early_stopping_patience,
         "evaluations without improvement before the run stops (default: never stops early)");
  scalar(app, "--load-best-model-at-end", o.evaluation.load_best_model_at_end,
         "keep the checkpoint with the lowest evaluation loss, and load its weights at the end");
  scalar(app, "--on-nan", o.optimizer.on_nan, "if a loss or gradient is not finite: stop, or skip the update")
      ->capture_default_str();
  scalar(app, "--report-to", o.reporting.report_to, "none, or tensorboard: event files in --output-dir/runs")
      ->capture_default_str();
}

// What --allow takes.
std::vector<std::string_view> permissions() {
  std::vector<std::string_view> words{kind_name(TechniqueKind::lossy), kind_name(TechniqueKind::data_order)};
  for (const Technique* technique : all_techniques())
    if (technique->by_permission) words.push_back(technique->name());
  return words;
}

// "lossy, data-order, packing or length-buckets".
std::string permissions_text() {
  std::vector<std::string_view> words = permissions();
  const std::string_view last = words.back();
  words.pop_back();
  return fmt::format("{} or {}", fmt::join(words, ", "), last);
}

void add_machine_options(CLI::App& app, TrainArguments& a) {
  MachineOptions& o = a.options.machine;
  TechniqueOptions& techniques = a.options.techniques;
  memory_option(
      app, "--memory", o.memory,
      "budget for all memory that the kernel charges to this process (default: 90 % of available memory); on a GPU: "
      "for all device memory of the process (default: all free device memory)");
  add_tier_options(app, o, a.tiers, "states, gradients, weights and activations");
  scalar(app, "--device", o.device, "cpu, cuda:N, or null: check every memory access and compute nothing")
      ->capture_default_str();
  scalar(app, "--threads", o.threads,
         "threads (default: those of --profile, else one for each CPU that the process may use)");
  scalar(
      app, "--profile", o.profile,
      "profile file or shipped profile: the plan uses its rates, threads and instruction set on any machine (default: "
      "this machine, with cached or shipped rates)");
  app.add_option("--allow", techniques.allow,
                 fmt::format("what the planner may use besides exact and reassociating techniques: {}; repeatable",
                             permissions_text()));
  scalar(app, "--arithmetic", techniques.arithmetic, "free, or fixed: the same losses, bitwise, at every budget")
      ->capture_default_str();
  scalar(app, "--group-by-length", techniques.group_by_length,
         "batches of rows of similar length, without most of the padding")
      ->capture_default_str();
  scalar(app, "--packing", techniques.packing, "several rows in each sequence, with attention inside each row only")
      ->capture_default_str();
  scalar(app, "--gradient-checkpointing", a.gradient_checkpointing, "alias of --technique recompute=on|off")
      ->type_name("BOOLEAN");
  scalar(app, "--per-device-train-batch-size", a.per_device_batch,
         "with --gradient-accumulation-steps: their product is the global batch size (default: 8)");
  scalar(app, "--gradient-accumulation-steps", a.accumulation, "see --per-device-train-batch-size (default: 1)");
  app.add_flag("--force", o.force, "accept a budget above what the machine can give");
  app.add_flag("--quiet", a.quiet, "no progress output");
}

bool parse_switch(const std::string& option, const std::string& value) {
  if (value == "true" || value == "on" || value == "1" || value == "True") return true;
  if (value == "false" || value == "off" || value == "0" || value == "False") return false;
  throw Error(ErrorKind::usage, fmt::format("{} {} is neither true nor false", option, value), "give true or false");
}

// Permission for what needs none, or for what is never used unless named, would change nothing.
[[noreturn]] void refuse_permission(const std::string& allowed, const Technique* technique) {
  const std::string others = fmt::format("--allow takes {}", permissions_text());
  if (!technique) throw Error(ErrorKind::usage, fmt::format("--allow {} is not known", allowed), others);
  const auto [option, value] = asked_by(*technique);
  if (is_planners_choice(*technique))
    throw Error(ErrorKind::usage, fmt::format("--allow {}: the planner uses it without permission", allowed),
                fmt::format("leave it out, or give {} {} to have it in the plan; {}", option, value, others));
  throw Error(ErrorKind::usage, fmt::format("--allow {}: it is used only when named", allowed),
              fmt::format("give {} {}; {}", option, value, others));
}

void check_permissions(const TechniqueOptions& o) {
  const std::vector<std::string_view> words = permissions();
  for (const std::string& allowed : o.allow)
    if (std::find(words.begin(), words.end(), allowed) == words.end())
      refuse_permission(allowed, find_technique(allowed));
}

void fold_precision(const std::string& technique, std::string_view word, TechniqueOptions& o) {
  if (o.precision != "32-true" && o.precision != word)
    throw Error(ErrorKind::usage, fmt::format("--technique {}=on contradicts --precision {}", technique, o.precision),
                "state one of them");
  o.precision = word;
}

// What a pin sets of the options of techniques; other options are not in these, and their pins stay pins.
void fold_pin(const Spelling& option, const std::string& technique, const std::string& setting, TechniqueOptions& o) {
  if (!option.setting.empty() && option.setting != setting) return;
  if (option.option == "--precision") fold_precision(technique, option.value, o);
  if (option.option == "--packing") o.packing = true;
  if (option.option == "--group-by-length") o.group_by_length = true;
  if (option.option == "--freeze" && setting != "off")
    for (const std::string& pattern : CLI::detail::split(setting, ',')) o.freeze.push_back(pattern);
  if (option.option == "--matmul-precision") o.matmul_precision = setting;
  if (option.option == "--attention-order") o.attention_order = setting;
}

// A pin of a technique that also has an option sets the option.
void fold_pins(TechniqueOptions& o) {
  for (const Technique* technique : all_techniques())
    if (const auto at = o.pins.find(std::string(technique->name())); at != o.pins.end())
      fold_pin(technique->option, at->first, at->second, o);
}

// The pin that a switch of another program means.
void pin_alias(const std::string& option, const std::string& given, TechniqueOptions& o) {
  const std::string_view value = parse_switch(option, given) ? "true" : "false";
  const Technique* const technique = technique_set_by(option);
  HR_CHECK(technique, "no technique has the alias {}", option);
  for (const Spelling& alias : technique->aliases)
    if (alias.option == option && alias.value == value) o.pins[std::string(technique->name())] = alias.setting;
}

}  // namespace

void add_train_options(CLI::App& app, TrainArguments& arguments) {
  app.add_option("--model", arguments.options.model.path,
                 "model directory in Hugging Face layout (plan: or a bare config.json)")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  TrainOptions& o = arguments.options;
  scalar(app, "--adapter", o.model.adapter,
         "LoRA adapter to train further, with its rank and modules: a directory that train or PEFT wrote")
      ->type_name("DIR");
  add_data_options(app, o.data, o.evaluation);
  add_schedule_options(app, o.schedule);
  add_optimizer_options(app, o.optimizer);
  add_arithmetic_options(app, o.techniques);
  add_loss_scale_options(app, o.techniques.fp16);
  scalar(app, "--dropout", o.model.dropout, "config: the probabilities of config.json; or off")->capture_default_str();
  scalar(app, "--seed", o.seed, "seed of shuffling and dropout")->capture_default_str()->check(CLI::NonNegativeNumber);
  add_run_options(app, o);
  add_machine_options(app, arguments);
  app.footer(technique_help(all_passes()));
}

TrainOptions resolve(const TrainArguments& arguments) {
  check_permissions(arguments.options.techniques);
  TrainOptions options = arguments.options;
  resolve_tiers(arguments.tiers, options.machine, options.techniques);
  fold_pins(options.techniques);
  if (!arguments.gradient_checkpointing.empty())
    pin_alias("--gradient-checkpointing", arguments.gradient_checkpointing, options.techniques);
  if (arguments.per_device_batch > 0 || arguments.accumulation > 0)
    options.data.global_batch_size = (arguments.per_device_batch > 0 ? arguments.per_device_batch : kDeviceBatch) *
                                     std::max<int64_t>(1, arguments.accumulation);
  if (options.schedule.max_steps == -1) options.schedule.max_steps = 0;  // transformers' way to say that epochs count
  if (options.machine.memory == 0)
    options.machine.memory = default_budget(options.machine.device, options.machine.profile);
  return options;
}

}  // namespace headroom
