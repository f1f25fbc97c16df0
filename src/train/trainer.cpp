#include "train/trainer.h"
#include "train/budget.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "base/bytes.h"
#include "base/error.h"
#include "base/process_memory.h"
#include "base/threads.h"
#include "device/device.h"
#include "formats/atomic_dir.h"
#include "planner/estimates.h"
#include "planner/search.h"
#include "train/adapter.h"
#include "train/bucket_programs.h"
#include "train/checkpoint.h"
#include "train/cut_metrics.h"
#include "train/evaluation.h"
#include "train/event_file.h"
#include "train/fresh_weights.h"
#include "train/metrics.h"
#include "train/objective.h"
#include "train/operation_times.h"
#include "train/other_trainings.h"
#include "train/run_data.h"
#include "train/run_record.h"
#include "train/schedule.h"
#include "train/step_probe.h"
#include "train/weights.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t kFullLengthSteps = 2;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

class Run {
 public:
  Run(const TrainOptions& options, const TrainEvents& events, RunControl& control)
      : options_(options), optimizer_(optimizer_settings(options)), events_(events), control_(control) {
    options_.runs_here = true;
  }

  TrainResult run() {
    model_ = open_model(options_.model);
    if (model_.directory.empty())
      throw Error(ErrorKind::usage,
                  fmt::format("{} is a bare config.json: there are no weights to train", options_.model.string()),
                  "make a fresh model with `headroom init`");
    refuse_without_head(model_, "train");
    check_evaluation(options_);
    find_missing_head();
    find_resume_point();
    check_output();
    make_plan();
    if (!result_.plan.feasible) return std::move(result_);
    if (!options_.force) refuse_budget_above_machine();
    prepare_device();
    open_output();
    open_data();
    if (device_kind(options_.device) == DeviceKind::null) return run_on_null();
    start();
    loop();
    finish();
    return std::move(result_);
  }

 private:
  bool classifies() const { return model_.spec.objective == Objective::classification; }

  void note(const std::string& text) const {
    if (events_.note) events_.note(text);
  }

  void refuse_budget_above_machine() const {
    if (device_kind(options_.device) == DeviceKind::cpu) refuse_above_machine("--memory", options_.memory);
    if (cuda_index(options_.device)) refuse_above_machine("--host-memory", options_.host_memory);
  }

  // A checkpoint of the bare model gets a head.
  void find_missing_head() {
    const SafetensorsSet files = SafetensorsSet::open(model_.directory);
    check_weights(model_.spec, files, HeadRule::may_miss);
    missing_ = missing_head(model_.spec, files);
    train_head_with_adapters(model_.spec, missing_, options_.lora);
    if (missing_.empty()) return;
    std::string names;
    for (const WeightInfo& weight : missing_) names += (names.empty() ? "" : ", ") + weight.name;
    note(fmt::format("{} holds no {}: drawn afresh with seed {}", model_.directory.string(), names, options_.seed));
  }

  void find_resume_point() {
    if (options_.resume_from_checkpoint.empty()) return;
    if (options_.resume_from_checkpoint == "true") {
      const auto newest = newest_checkpoint(options_.output_dir);
      // A run that ended before its first checkpoint begins anew.
      restarts_ = !newest && fs::exists(options_.output_dir / "metrics.jsonl") &&
                  !fs::exists(options_.output_dir / "model.safetensors");
      if (restarts_)
        return note(
            fmt::format("{} holds no complete checkpoint yet: starting from step 0", options_.output_dir.string()));
      if (!newest)
        throw Error(ErrorKind::usage, fmt::format("{} holds no complete checkpoint", options_.output_dir.string()),
                    "start without --resume-from-checkpoint");
      resume_ = *newest;
    } else {
      resume_ = options_.resume_from_checkpoint;
      if (!fs::exists(resume_ / "state.json"))
        throw Error(ErrorKind::usage, fmt::format("{} is no checkpoint: it has no state.json", resume_.string()),
                    remedy_for_no_checkpoint());
    }
    state_ = read_state(resume_);
  }

  std::string remedy_for_no_checkpoint() const {
    for (const fs::path& directory : {resume_, options_.output_dir})
      if (const auto newest = newest_checkpoint(directory))
        return fmt::format("give {}{}", newest->string(), directory == options_.output_dir ? ", or true for it" : "");
    return "give a checkpoint-N directory, or true for the newest in --output-dir";
  }

  void make_plan() {
    PlanRequest request = training_request(options_, model_);
    set_threads(request.facts.threads);
    if (const std::string remark = profile_remark(options_, request); !remark.empty()) note(remark);
    if (!resume_.empty() && options_.micro_batch_size == 0) {
      request.micro_batch = std::min(state_.micro_batch, options_.global_batch_size);
      request.loss_chunk = state_.loss_chunk;
      search(request);
      if (!result_.plan.feasible) {
        note(
            "the checkpoint's micro-batch and chunk sizes do not fit this budget: others are chosen, losses agree to "
            "1e-5 instead of bitwise");
        request.micro_batch = 0;
        request.loss_chunk = -1;
        search(request);
      }
    } else {
      search(request);
    }
    if (!result_.plan.feasible) find_alternatives(request, other_trainings(options_, model_), result_.plan);
    if (events_.planned) events_.planned(result_.plan);
    if (const std::string remark = request.profile.remark(); !remark.empty()) note(remark);
    if (const std::string unmeasured = estimates(request.profile); !unmeasured.empty()) note("note: " + unmeasured);
  }

  void search(const PlanRequest& request) {
    SearchResult found = search_training_plan(request);
    if (found.plan.feasible) memory_record_ = memory_record(found);
    result_.plan = std::move(found.plan);
  }

  // What a GPU would refuse, it refuses before anything is written: its kernels and libraries are loaded here. The CPU
  // prepares its kernels when the data's tokens are there, as that takes memory of the same budget.
  void prepare_device() {
    device_ = open_device(options_.device, result_.plan.facts, options_.disk_directory);
    for (const Tier tier : kArenaTiers) device_->require_room(tier, result_.plan.arenas().of(tier));
    if (cuda_index(options_.device)) executor_.emplace(result_.plan, *device_, &port_, Reservation::later);
    if (const std::string remark = device_->remark(); !remark.empty()) note(remark);
  }

  void check_output() const {
    const fs::path& out = options_.output_dir;
    std::error_code status;
    if (fs::exists(out, status) && !fs::is_directory(out, status))
      throw Error(ErrorKind::usage, fmt::format("--output-dir {} is not a directory", out.string()),
                  "give a fresh --output-dir");
    if (resume_.empty() && !restarts_ &&
        (fs::exists(out / "metrics.jsonl", status) || fs::exists(out / "model.safetensors", status) ||
         newest_checkpoint(out)))
      throw Error(ErrorKind::usage, fmt::format("{} holds another run", out.string()),
                  "give a fresh --output-dir, or --resume-from-checkpoint true");
  }

  void open_output() {
    const fs::path& out = options_.output_dir;
    std::error_code status;
    created_output_ = !fs::exists(out, status);
    fs::create_directories(out, status);
    if (status)
      throw Error(ErrorKind::run, fmt::format("cannot create {}: {}", out.string(), status.message()),
                  "check --output-dir");
  }

  // Tokenises before the arena exists; the tokenizer is gone afterwards.
  void open_data() {
    try {
      targets_ = row_targets(model_, options_.mlm_probability, options_.seed);
      eval_targets_ = row_targets(model_, options_.mlm_probability, kEvaluationSeed);
      data_.emplace(open_run_data(options_, model_, result_.plan, !resume_.empty()));
    } catch (...) {
      std::error_code status;
      if (created_output_) fs::remove(options_.output_dir, status);
      throw;
    }
    ::malloc_trim(0);
    const int64_t steps = steps_per_epoch(data_->train.samples(), options_.global_batch_size);
    total_steps_ = options_.max_steps > 0
                       ? options_.max_steps
                       : static_cast<int64_t>(std::ceil(options_.num_train_epochs * static_cast<double>(steps)));
    note(describe_data(data_->train));
    const LengthHistogram& lengths = data_->train.cache.counts().lengths;
    if (lengths.rows() == 0) return;
    note(describe_lengths(lengths, model_.spec.max_positions));
    write_text_durably(options_.output_dir / "data.json", lengths_json(lengths, model_.spec.max_positions));
  }

  TrainResult run_on_null() {
    Executor executor(result_.plan, *device_, nullptr);
    const Trips trips[] = {{"micro_batches", std::min<int64_t>(2, result_.plan.choices.accumulation)},
                           {"eval_batches", 2}};
    for (const PlanProgram& program : result_.plan.programs) executor.run(program.name, trips);
    note("null device: every access of every program lies inside the arena and reads what was written for it");
    return std::move(result_);
  }

  void start() {
    if (executor_)
      executor_->reserve_arenas();
    else
      executor_.emplace(result_.plan, *device_, &port_);
    if (resume_.empty()) {
      read_weights(*executor_, model_.spec, SafetensorsSet::open(model_.directory));
      draw_weights(*executor_, model_.spec, missing_, options_.seed);
      init_adapter(*executor_, options_.seed);
      executor_->run("load", {});
      for (const PersistentTensor& tensor : result_.plan.tensors)
        if (tensor.role == Role::optimizer)
          executor_->write(executor_->tensor(tensor.name), [](int64_t, std::span<std::byte> piece) {
            std::fill(piece.begin(), piece.end(), std::byte{0});
          });
    } else {
      load_checkpoint(*executor_, model_, options_.lora, resume_);
      note(state_.step < total_steps_
               ? fmt::format("resuming {} after step {} of {}", resume_.string(), state_.step, total_steps_)
               : fmt::format("{} stands at step {} of {}: no step is left to train", resume_.string(), state_.step,
                             total_steps_));
      for (const std::string& change : changed_options(state_.options, options_text(options_)))
        note("changed since the checkpoint: " + change);
      if (state_.data_key != data_->train.key()) note("changed since the checkpoint: the data files or the tokenizer");
      // What was evaluated is not at the end again.
      if (cut_metrics(options_.output_dir / "metrics.jsonl", state_.step)) evaluated_at_ = state_.step;
      check_best();
    }
    if (restarts_) cut_metrics(options_.output_dir / "metrics.jsonl", 0);
    write_text_durably(options_.output_dir / "plan.json", plan_json(result_.plan));
    write_text_durably(options_.output_dir / "memory.json", memory_record_);
    std::string().swap(memory_record_);
    state_.seed = options_.seed;
    state_.micro_batch = result_.plan.choices.micro_batch;
    state_.loss_chunk = result_.plan.choices.loss_chunk;
    state_.data_key = data_->train.key();
    state_.options = options_text(options_);
    metrics_.emplace(options_.output_dir / "metrics.jsonl");
    if (options_.report_to == "tensorboard") events_file_.emplace(options_.output_dir / "runs", state_.step + 1);
    record_ = write_process_json(options_.output_dir, state_.step + 1, total_steps_);
    probe_ = std::make_unique<StepProbe>(*result_.plan.program("train_step"));
    reader_.emplace(data_->train.cache, SampleOrder(data_->train.samples(), options_.seed, options_.shuffle),
                    result_.plan.choices.seq_length, options_.global_batch_size, targets_, data_->train.packs_or_null(),
                    !result_.plan.choices.buckets.empty());
    programs_.emplace(result_.plan, "train_step");
  }

  void loop() {
    while (state_.step < total_steps_ && !result_.stopped_by && !early_stop_) {
      step();
      const bool at_save = options_.save_steps > 0 && state_.step % options_.save_steps == 0;
      const bool at_eval = options_.eval_steps > 0 ? state_.step % options_.eval_steps == 0 : at_save;
      if (at_eval) evaluate();
      result_.stopped_by = control_.stop_signal.load();
      if (at_save || control_.save_now.exchange(false)) save();
    }
  }

  void step() {
    const Clock::time_point begin = Clock::now();
    const int64_t step = state_.step + 1;
    const SampleRange range = samples_from(state_.next_sample, data_->train.samples(), options_.global_batch_size);
    const int64_t targets = reader_->begin(range);
    port_.set_reader(&*reader_);
    const double rate = learning_rate_at(options_, step, total_steps_);
    executor_->put<float>(executor_->tensor("hyper"), step_scalars(options_, optimizer_, rate, step, targets).values());
    const int64_t micro_batch = result_.plan.choices.micro_batch;
    const Trips trips[] = {{"micro_batches", (range.count + micro_batch - 1) / micro_batch}};
    // The first steps of a run take the plan's full length, whatever their rows: what is planned has then been used.
    const std::string& program =
        step <= kFullLengthSteps ? programs_->full() : programs_->holding(reader_->longest(0, range.count));
    probing_ = probe_ && program == programs_->full();
    if (probing_) probe_->begin(trips[0].count), ++probed_steps_;
    if (probing_) executor_->set_interrupt([this] { return probe_->after_kernel(), false; });
    executor_->run(program, trips);
    executor_->set_interrupt({});
    const TensorView result = executor_->result(program, 0);
    double sums_buffer[3], squares_buffer[1];
    const std::span<const double> sums =
        executor_->get<double>(result, std::span(sums_buffer).first(static_cast<size_t>(result.count())));
    const double squares = executor_->get<double>(executor_->tensor("grad_sum_squares"), squares_buffer)[0];
    StepReport report{step,
                      total_steps_,
                      sums[1] > 0 ? sums[0] / sums[1] : 0,
                      std::sqrt(squares),
                      learning_rate_at(options_, step, total_steps_),
                      reader_->tokens(),
                      seconds_since(begin),
                      resident_bytes(),
                      std::nullopt,
                      classifies() ? range.count : 0};
    peak_.include(report.resident_bytes);
    if (sums.size() > 2) report.accuracy = sums[1] > 0 ? sums[2] / sums[1] : 0;
    if (probed_steps_ == 2 || step == total_steps_) write_measured();
    if (!std::isfinite(report.loss) || !std::isfinite(report.grad_norm)) stop_or_skip(report);
    state_.step = step;
    state_.next_sample = range.first + range.count;
    result_.steps = step;
    if (step % options_.logging_steps == 0 || step == total_steps_) log(report);
    if (events_.step) events_.step(report);
  }

  // Two steps are measured: memory in the first, time in the second.
  void write_measured() {
    if (!probe_) return;
    peak_.include(probe_->highest_resident());
    write_text_durably(options_.output_dir / "measured.json", probe_->json());
    write_text_durably(options_.output_dir / "operations.json",
                       operations_json(*result_.plan.program("train_step"), probe_->seconds(), probe_->calls()));
    probe_.reset();
  }

  void log(const StepReport& report) {
    metrics_->step(report);
    if (!events_file_) return;
    const Scalar scalars[] = {{"train/loss", report.loss},
                              {"train/grad_norm", report.grad_norm},
                              {"train/learning_rate", report.learning_rate},
                              {"train/tokens_per_second", report.per_second(report.tokens)},
                              {"train/memory_mib", static_cast<double>(report.resident_bytes) / (1 << 20)},
                              {"train/accuracy", report.accuracy.value_or(0)},
                              {"train/samples_per_second", report.per_second(report.samples)}};
    const size_t count = report.samples > 0 ? 7 : report.accuracy ? 6 : 5;
    events_file_->scalars(report.step, std::span(scalars).first(count));
  }

  void stop_or_skip(const StepReport& report) {
    if (options_.on_nan == "skip") {
      note(fmt::format("step {}: loss {}, gradient norm {}: the update was skipped", report.step, report.loss,
                       report.grad_norm));
      return;
    }
    throw Error(ErrorKind::run,
                fmt::format("step {}: loss {}, gradient norm {}: training has diverged", report.step, report.loss,
                            report.grad_norm),
                "lower --learning-rate, add --warmup-steps, or resume from the last checkpoint");
  }

  // The best checkpoint of a resumed run is gone when --load-best-model-at-end was not given before.
  void check_best() {
    if (!options_.load_best_model_at_end || state_.best_step == 0 || fs::exists(checkpoint_of(state_.best_step)))
      return;
    note(fmt::format("the best model so far, of step {}, was not kept: the best of the steps to come is",
                     state_.best_step));
    state_.best_step = 0;
    state_.best_eval_loss = 0;
  }

  fs::path checkpoint_of(int64_t step) const { return options_.output_dir / fmt::format("checkpoint-{}", step); }

  // Every set, then the mean over the target tokens of all.
  void evaluate() {
    if (data_->evaluation.empty()) return;
    evaluated_at_ = state_.step;
    EvaluationResult all;
    for (const SequenceSet& set : data_->evaluation) {
      const EvaluationResult result = evaluate_cache(
          *executor_, port_, set.cache, result_.plan.choices.seq_length, result_.plan.choices.micro_batch,
          options_.global_batch_size, options_.eval_max_batches, eval_targets_, set.packs_or_null(), classifies());
      all.add(result);
      if (!set.name.empty()) log_evaluation(set.name, result);
    }
    log_evaluation("", all);
    judge(all.loss);
  }

  void log_evaluation(const std::string& set, const EvaluationResult& result) {
    metrics_->evaluation(state_.step, result, set);
    if (events_file_) {
      const std::string suffix = set.empty() ? "" : "/" + set;
      const std::string tags[] = {"eval/loss" + suffix, "eval/accuracy" + suffix, "eval/perplexity" + suffix};
      std::vector<Scalar> scalars = {{tags[0], result.loss}};
      if (result.hits) scalars.push_back({tags[1], result.accuracy()});
      if (!result.classes) scalars.push_back({tags[2], std::exp(result.loss)});
      events_file_->scalars(state_.step, scalars);
    }
    if (events_.evaluated) events_.evaluated(state_.step, set, result);
  }

  // Keeps the best model, and ends a run that stops getting better.
  void judge(double loss) {
    const bool better = std::isfinite(loss) && (state_.best_eval_loss == 0 || loss < state_.best_eval_loss);
    state_.evals_since_best = better ? 0 : state_.evals_since_best + 1;
    if (better) {
      state_.best_eval_loss = loss;
      state_.best_step = state_.step;
      if (options_.load_best_model_at_end) save();
    }
    const int64_t patience = options_.early_stopping_patience;
    if (patience == 0 || state_.evals_since_best < patience || state_.step == total_steps_) return;
    early_stop_ = {state_.evals_since_best, state_.best_step, state_.best_eval_loss};
    note(fmt::format("step {}: no better evaluation loss in {} evaluations, stopping", state_.step,
                     state_.evals_since_best));
  }

  void save() {
    if (saved_at_ == state_.step) return;
    metrics_->sync();
    save_checkpoint(*executor_, model_, state_, options_);
    saved_at_ = state_.step;
    if (events_.saved) events_.saved(state_.step, checkpoint_of(state_.step).string());
  }

  void finish() {
    if (!result_.stopped_by && evaluated_at_ != state_.step) evaluate();
    save();
    if (options_.load_best_model_at_end && !result_.stopped_by) load_best();
    if (options_.lora.rank > 0)
      write_adapter(*executor_, model_, options_.lora, options_.output_dir);
    else
      write_model(*executor_, model_, saved_dtype(options_), options_.output_dir);
    metrics_->sync();
    write_run_json(options_.output_dir / "run.json",
                   {result_.plan.arena_bytes, executor_->arena_high_water(), result_.plan.disk.arena_bytes,
                    executor_->arena_high_water(Tier::disk), device_->memory().outside_arena_bytes, peak_.bytes(),
                    options_.memory, record_.started_unix_ms, state_.step, total_steps_, result_.stopped_by,
                    result_.stopped_by ? std::nullopt : early_stop_});
    if (events_.saved) events_.saved(state_.step, options_.output_dir.string());
  }

  void load_best() {
    if (state_.best_step == 0 || state_.best_step == state_.step) return;
    load_weights_of_checkpoint(*executor_, model_, options_.lora, checkpoint_of(state_.best_step));
    note(fmt::format("the model is that of step {}, evaluation loss {:.4f}", state_.best_step, state_.best_eval_loss));
  }

  TrainOptions options_;
  OptimizerSettings optimizer_;
  const TrainEvents& events_;
  RunControl& control_;
  ModelFiles model_;
  TrainResult result_;
  RunState state_;
  fs::path resume_;
  bool created_output_ = false;
  bool restarts_ = false;
  std::vector<WeightInfo> missing_;  // of the head; drawn
  RowTargets targets_, eval_targets_;
  std::optional<RunData> data_;
  std::unique_ptr<Device> device_;
  BatchPort port_;
  std::optional<Executor> executor_;
  std::optional<Metrics> metrics_;
  std::optional<EventFile> events_file_;
  std::unique_ptr<StepProbe> probe_;  // until two steps are measured
  std::string memory_record_;         // memory.json, until it is written
  bool probing_ = false;              // this step
  int probed_steps_ = 0;
  std::optional<BucketPrograms> programs_;
  RunRecord record_;
  RecordedPeak peak_;
  std::optional<BatchReader> reader_;
  int64_t total_steps_ = 0;
  int64_t evaluated_at_ = -1;
  int64_t saved_at_ = -1;
  std::optional<EarlyStop> early_stop_;
};

}  // namespace

TrainResult train(const TrainOptions& options, const TrainEvents& events, RunControl& control) {
  return Run(options, events, control).run();
}

}  // namespace headroom
