#include "engine/train_model.h"

#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/threads.h"
#include "device/device.h"
#include "engine/budget.h"
#include "engine/memory_record.h"
#include "engine/null_run.h"
#include "engine/plan_training.h"
#include "formats/atomic_dir.h"
#include "planner/estimates.h"
#include "train/initial_state.h"
#include "train/training_loop.h"
#include "weights/fresh_weights.h"
#include "weights/objective.h"
#include "weights/saved_model.h"
#include "weights/weights.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

void refuse_without_files(const TrainOptions& options) {
  if (options.data.train.empty()) throw Error(ErrorKind::usage, "no training data", "give --data FILE");
  if (options.saving.output_dir.empty()) throw Error(ErrorKind::usage, "no output directory", "give --output-dir DIR");
}

ModelFiles open_trainable(const TrainOptions& options) {
  ModelFiles model = open_model(options.model.path);
  if (model.directory.empty())
    throw Error(ErrorKind::usage,
                fmt::format("{} is a bare config.json: there are no weights to train", options.model.path.string()),
                "make a fresh model with `headroom init`");
  refuse_without_head(model, "train");
  return model;
}

// Creates the directory; returns whether it did not exist.
bool create_output(const fs::path& out) {
  std::error_code status;
  const bool created = !fs::exists(out, status);
  fs::create_directories(out, status);
  if (status)
    throw Error(ErrorKind::run, fmt::format("cannot create {}: {}", out.string(), status.message()),
                "check --output-dir");
  return created;
}

// A run up to its loop; then the loop.
class TrainingRun {
 public:
  TrainingRun(const TrainOptions& options, const TrainEvents& events, RunControl& control)
      : options_(options), events_(events), control_(control) {
    options_.machine.runs_here = true;
  }

  TrainResult run() {
    refuse_without_files(options_);
    model_ = open_trainable(options_);
    go_on_from_adapter(options_, model_);
    check_evaluation(options_.evaluation);
    find_missing_head();
    from_ = find_resume_point(options_.saving, [&](const std::string& text) { events_.say(text); });
    check_output(options_.saving, from_);
    make_plan();
    if (!plan_.feasible) return {std::move(plan_)};
    if (!options_.machine.force)
      refuse_budgets_above_machine(options_.machine.device, options_.machine.memory, options_.machine.host_memory);
    prepare_device();
    open_data();
    TrainResult result;
    if (device_kind(options_.machine.device) == DeviceKind::null)
      check_on_null();
    else
      train(result);
    result.plan = std::move(plan_);
    return result;
  }

 private:
  // A checkpoint of a bare model gets a head.
  void find_missing_head() {
    const SafetensorsSet files = SafetensorsSet::open(model_.weights);
    check_weights(model_.spec, files, HeadRule::may_miss);
    missing_ = missing_head(model_.spec, files);
    train_head_with_adapters(model_.spec, missing_, options_.techniques.lora);
    if (missing_.empty()) return;
    std::string names;
    for (const WeightInfo& weight : missing_) names += (names.empty() ? "" : ", ") + weight.name;
    events_.say(fmt::format("{} holds no {}: initialised at random with seed {}", model_.directory.string(), names,
                            options_.seed));
  }

  void make_plan() {
    const auto say = [&](const std::string& text) { events_.say(text); };
    PlannedTraining planned = plan_run(options_, model_, from_, say);
    if (planned.search.plan.feasible) memory_json_ = memory_record(planned.search);
    plan_ = std::move(planned.search.plan);
    if (events_.planned) events_.planned(plan_);
    events_.say(planned.request.profile.remark());
    events_.say(estimates_note(planned.request.profile));
  }

  // A GPU's kernels and libraries are loaded here, so that it refuses before anything is written. The CPU's kernels are
  // prepared after the data is tokenised, as both use memory of the same budget.
  void prepare_device() {
    device_ = open_device(options_.machine.device, plan_.facts, options_.machine.disk_directory);
    for (const Tier tier : kArenaTiers) device_->require_room(tier, plan_.arenas().of(tier));
    if (device_kind(options_.machine.device) == DeviceKind::accelerator)
      executor_.emplace(plan_, *device_, &port_, Reservation::later);
    events_.say(device_->remark());
  }

  // Tokenises before the arena exists; the tokenizer is gone afterwards. Adapters are saved without one.
  void open_data() {
    const fs::path& out = options_.saving.output_dir;
    const bool created = create_output(out);
    try {
      targets_ = row_targets(model_, options_.data.mlm_probability, options_.seed);
      evaluation_targets_ = row_targets(model_, options_.data.mlm_probability, kEvaluationSeed);
      data_.emplace(open_run_data(options_, model_, plan_, from_.resumes()));
      if (options_.techniques.lora.rank == 0) keep_tokenizer(model_, out);
    } catch (...) {
      std::error_code status;
      if (created) fs::remove(out, status);
      throw;
    }
    events_.say(describe_data(data_->train));
    const LengthHistogram& lengths = data_->train.cache.counts().lengths;
    if (lengths.rows() == 0) return;
    events_.say(describe_lengths(lengths, model_.spec.max_positions));
    write_text_durably(out / "data.json", lengths_json(lengths, model_.spec.max_positions));
  }

  int64_t total_steps() const {
    const ScheduleOptions& schedule = options_.schedule;
    if (schedule.max_steps > 0) return schedule.max_steps;
    const int64_t steps = steps_per_epoch(data_->train.samples(), options_.data.global_batch_size);
    return static_cast<int64_t>(std::ceil(schedule.num_train_epochs * static_cast<double>(steps)));
  }

  void check_on_null() {
    run_on_null(plan_, *device_);
    events_.say("null device: every access of every program is inside the arena and reads what was written for it");
  }

  void fill_tensors() {
    if (executor_)
      executor_->reserve_arenas();
    else
      executor_.emplace(plan_, *device_, &port_);
    if (from_.resumes())
      fill_from_checkpoint(*executor_, model_, options_, from_, data_->train.key(), total_steps(), events_);
    else
      fill_fresh(*executor_, model_, options_, missing_);
  }

  void train(TrainResult& result) {
    fill_tensors();
    const fs::path& out = options_.saving.output_dir;
    write_text_durably(out / "plan.json", plan_json(plan_));
    write_text_durably(out / "memory.json", memory_json_);
    std::string().swap(memory_json_);
    TrainingLoop loop(
        {options_, model_, *data_, targets_, evaluation_targets_, *executor_, port_, *device_, events_, control_},
        from_, total_steps());
    loop.run();
    loop.finish();
    result.steps = loop.steps();
    result.stopped_by = loop.stopped_by();
  }

  TrainOptions options_;
  const TrainEvents& events_;
  RunControl& control_;
  ModelFiles model_;
  std::vector<WeightInfo> missing_;  // of the head; random
  ResumePoint from_;
  Plan plan_;
  std::string memory_json_;  // until it is written
  std::unique_ptr<Device> device_;
  RowTargets targets_, evaluation_targets_;
  std::optional<RunData> data_;
  BatchPort port_;
  std::optional<Executor> executor_;
};

}  // namespace

TrainResult train_model(const TrainOptions& options, const TrainEvents& events, RunControl& control) {
  return TrainingRun(options, events, control).run();
}

}  // namespace headroom
