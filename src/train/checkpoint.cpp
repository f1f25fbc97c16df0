#include "train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/lines.h"
#include "formats/atomic_dir.h"
#include "formats/file.h"
#include "formats/json.h"
#include "passes/chunked_loss.h"
#include "passes/micro_batch.h"
#include "planner/pipeline.h"
#include "weights/adapter.h"
#include "weights/saved_model.h"
#include "weights/weights.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kPrefix = "checkpoint-";
constexpr int64_t kMaxStateBytes = 256 * 1024;  // of state.json, which has about 1500

std::optional<int64_t> step_of(const fs::path& directory) {
  const std::string name = directory.filename().string();
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [at, status] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (status != std::errc() || at != end || name != fmt::format("{}{}", kPrefix, step)) return std::nullopt;
  return step;
}

// The complete checkpoints of a directory. Of their steps it keeps, in ascending order, only as many as one pass needs.
struct Checkpoints {
  static constexpr size_t kMost = 256;
  int64_t count = 0, newest = -1;
  std::vector<int64_t> oldest;  // at most kMost
};

// `kept`: a step whose checkpoint is not removed.
Checkpoints checkpoints_in(const fs::path& output_dir, int64_t kept = -1) {
  Checkpoints found;
  each_name_in(output_dir, [&](const std::string& name) {
    const std::optional<int64_t> step = step_of(name);
    if (!step || *step == kept || !is_there(output_dir / name / "state.json")) return;
    ++found.count;
    found.newest = std::max(found.newest, *step);
    found.oldest.insert(std::lower_bound(found.oldest.begin(), found.oldest.end(), *step), *step);
    if (found.oldest.size() > Checkpoints::kMost) found.oldest.pop_back();
  });
  return found;
}

fs::path checkpoint_of(const fs::path& output_dir, int64_t step) {
  return output_dir / fmt::format("{}{}", kPrefix, step);
}

// The oldest beyond `limit`.
void remove_checkpoints(const fs::path& output_dir, int64_t limit, int64_t kept) {
  for (;;) {
    const Checkpoints all = checkpoints_in(output_dir, kept);
    const auto surplus = static_cast<size_t>(std::max<int64_t>(0, all.count - limit));
    if (surplus == 0) return;
    for (size_t i = 0; i < std::min(surplus, all.oldest.size()); ++i)
      remove_directory(checkpoint_of(output_dir, all.oldest[i]));
  }
}

// The whole number at `key` of a state.json, 0 or more.
template <typename Number = int64_t>
Number count_at(const fs::path& file, const Json& json, const char* key) {
  constexpr uint64_t kMost = std::is_same_v<Number, uint64_t> ? UINT64_MAX : uint64_t{1} << 50;
  const Json& value = json.at(key);
  if (value.is_number_unsigned() && value.get<uint64_t>() <= kMost) return value.get<Number>();
  throw Error(ErrorKind::format, fmt::format("{}: '{}' is not a whole number in range", file.string(), key),
              "resume from an older checkpoint");
}

void load_states(Executor& executor, const ModelFiles& model, const fs::path& checkpoint) {
  const SafetensorsFile states =
      SafetensorsFile::open(checkpoint / "optimizer.safetensors", most_own_header_bytes(model.spec));
  for (const PersistentTensor& tensor : executor.plan().tensors) {
    if (tensor.role != Role::optimizer) continue;
    const StoredTensor* stored = states.find(tensor.name);
    const StoredType type = stored_as(tensor.place.type.dtype);
    const int64_t width = stored_type_bytes(type);
    if (!stored || stored->shape != tensor.place.type.dims || stored->type != type)
      throw Error(ErrorKind::format,
                  fmt::format("{}: state '{}' is missing, or not {} [{}]", states.path().string(), tensor.name,
                              stored_type_name(type), fmt::join(tensor.place.type.dims, ", ")),
                  "resume with the optimizer that wrote it, or from an older checkpoint");
    executor.write(executor.tensor(tensor.name),
                   [&](int64_t first, std::span<std::byte> piece) { states.read(*stored, first * width, piece); });
  }
}

// Settings that a resumed run pins.
std::map<std::string, std::string> techniques_at(const fs::path& file, const Json& json) {
  if (!json.contains("techniques")) {  // written by a version that only had these two
    const int64_t rows = count_at(file, json, "loss_chunk_rows");
    return {{std::string(kMicroBatch.name), std::to_string(count_at(file, json, "micro_batch_size"))},
            {std::string(kChunkedLoss.name), rows == 0 ? "off" : std::to_string(rows)}};
  }
  auto pins = json.at("techniques").get<std::map<std::string, std::string>>();
  for (const auto& [name, setting] : pins) {
    const Technique* const technique = find_technique(name);
    const auto refuse = [&, &key = name, &value = setting] {
      throw Error(ErrorKind::format,
                  fmt::format("{}: '{}' is not a setting of technique '{}'", file.string(), value, key),
                  "resume from an older checkpoint");
    };
    if (!technique || !technique->as_pin) refuse();
    try {
      technique->check({}, setting);
    } catch (const Error&) {
      refuse();
    }
  }
  return pins;
}

LossScaleState scaling_at(const fs::path& file, const Json& json) {
  LossScaleState scaling{json.at("scale").get<double>(), count_at(file, json, "good_steps"),
                         count_at(file, json, "patience"), count_at(file, json, "skipped")};
  if (!(scaling.scale >= 0x1p-24 && scaling.scale <= 0x1p127))
    throw Error(ErrorKind::format, fmt::format("{}: a loss scale of {}", file.string(), scaling.scale),
                "resume from an older checkpoint");
  return scaling;
}

}  // namespace

std::string state_json(const RunState& state) {
  OrderedJson json{{"step", state.step},           {"next_sample", state.next_sample},
                   {"seed", state.seed},           {"techniques", state.techniques},
                   {"data_key", state.data_key},   {"best_eval_loss", state.best_eval_loss},
                   {"best_step", state.best_step}, {"evals_since_best", state.evals_since_best},
                   {"options", state.options}};
  const LossScaleState& scaling = state.scaling;
  if (state.scaled || scaling.skipped > 0)
    json["loss_scale"] = {{"scale", scaling.scale},
                          {"good_steps", scaling.good_steps},
                          {"patience", scaling.patience},
                          {"skipped", scaling.skipped}};
  return json.dump(1) + "\n";
}

RunState read_state(const fs::path& checkpoint) {
  const fs::path file = checkpoint / "state.json";
  const Json json = read_json(file, kMaxStateBytes);
  RunState state;
  try {
    state.step = count_at(file, json, "step");
    state.next_sample = count_at(file, json, "next_sample");
    state.seed = count_at<uint64_t>(file, json, "seed");
    state.techniques = techniques_at(file, json);
    state.data_key = count_at<uint64_t>(file, json, "data_key");
    state.best_eval_loss = json.at("best_eval_loss").get<double>();
    state.best_step = json.contains("best_step") ? count_at(file, json, "best_step") : 0;
    state.evals_since_best = count_at(file, json, "evals_since_best");
    state.options = json.at("options").get<std::string>();
    state.scaled = json.contains("loss_scale");
    if (state.scaled) state.scaling = scaling_at(file, json.at("loss_scale"));
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::format, fmt::format("{}: malformed: {}", file.string(), e.what()),
                "resume from an older checkpoint");
  }
  if (state.scaling.skipped > state.step)
    throw Error(ErrorKind::format,
                fmt::format("{}: {} of {} steps left out", file.string(), state.scaling.skipped, state.step),
                "resume from an older checkpoint");
  if (state.best_step > state.step)
    throw Error(ErrorKind::format,
                fmt::format("{}: best step {} of {} is out of range", file.string(), state.best_step, state.step),
                "resume from an older checkpoint");
  return state;
}

std::string options_text(const TrainOptions& o) {
  return fmt::format(
      "global-batch-size={}\nmax-seq-length={}\nmax-steps={}\nnum-train-epochs={}\nlearning-rate={}\nlr-scheduler-type="
      "{}\nwarmup-steps={}\nmin-lr={}\n"
      "weight-decay={}\nadam-beta1={}\nadam-beta2={}\nadam-epsilon={}\nmax-grad-norm={}\nprecision={}\nseed={}"
      "\nshuffle={}\nmatmul-precision={}\nfreeze={}\nlora-r={}\nlora-alpha={}\nlora-rslora={}\nlora-target-"
      "modules={}\nmodules-to-save={}\nlora-dropout={}\npacking={}\ngroup-by-length={}\nmlm-probability={}\ndropout={}"
      "\noptim={}\noptim-args={}\nfp16={}\nattention-order={}\nuse-dora={}\n",
      o.data.global_batch_size, o.data.max_seq_length, o.schedule.max_steps, o.schedule.num_train_epochs,
      o.schedule.learning_rate, o.schedule.lr_scheduler_type, o.schedule.warmup_steps, o.schedule.min_lr,
      o.optimizer.weight_decay, o.optimizer.adam_beta1, o.optimizer.adam_beta2, o.optimizer.adam_epsilon,
      o.techniques.max_grad_norm, o.techniques.precision, o.seed, o.data.shuffle, o.techniques.matmul_precision,
      fmt::join(o.techniques.freeze, ","), o.techniques.lora.rank, o.techniques.lora.alpha,
      o.techniques.lora.rank_stabilised, fmt::join(o.techniques.lora.targets, ","),
      fmt::join(o.techniques.lora.modules_to_save, ","), o.techniques.lora.dropout, o.techniques.packing,
      o.techniques.group_by_length, o.data.mlm_probability, o.model.dropout, o.optimizer.optim, o.optimizer.optim_args,
      text_of(o.techniques.fp16), o.techniques.attention_order, o.techniques.lora.decomposed);
}

std::vector<std::string> changed_options(const std::string& before, const std::string& now) {
  std::vector<std::string> changed;
  for (std::string_view a = before, b = now; !a.empty() && !b.empty();)
    if (const std::string_view x = take_line(a), y = take_line(b); x != y)
      changed.push_back(fmt::format("{} (was {})", y, x.substr(x.find('=') + 1)));
  return changed;
}

void save_checkpoint(Executor& executor, const ModelFiles& model, const RunState& state, const TrainOptions& options) {
  AtomicDirectory directory(checkpoint_of(options.saving.output_dir, state.step));
  if (options.techniques.lora.rank > 0)
    write_adapter(executor, model, options.techniques.lora, directory.path());
  else
    write_model(executor, model, master_dtype(options.techniques), directory.path());
  save_tensors(executor, Role::optimizer, StoredType::f32, directory.path() / "optimizer.safetensors");
  write_text_durably(directory.path() / "plan.json", plan_json(executor.plan()));
  write_text_durably(directory.path() / "state.json", state_json(state));
  directory.commit();
  remove_checkpoints(options.saving.output_dir, options.saving.save_total_limit,
                     options.evaluation.load_best_model_at_end ? state.best_step : -1);
}

std::optional<fs::path> newest_checkpoint(const fs::path& output_dir) {
  recover_directories_in(output_dir);
  const int64_t newest = checkpoints_in(output_dir).newest;
  if (newest < 0) return std::nullopt;
  return checkpoint_of(output_dir, newest);
}

void load_checkpoint(Executor& executor, const ModelFiles& model, const LoraOptions& lora, const fs::path& checkpoint) {
  load_states(executor, model, checkpoint);
  load_weights_of_checkpoint(executor, model, lora, checkpoint);
}

void load_weights_of_checkpoint(Executor& executor, const ModelFiles& model, const LoraOptions& lora,
                                const fs::path& checkpoint) {
  if (lora.rank > 0) {
    read_weights(executor, model.spec, SafetensorsSet::open(model.weights));
    load_adapter(executor, lora, checkpoint);
    executor.run("load", {});
    return;
  }
  const SafetensorsSet weights = SafetensorsSet::open(checkpoint, most_own_header_bytes(model.spec));
  ModelSpec spec = model.spec;
  if (trains_codes(executor)) spec.weight_codes = "int8";
  check_weights(spec, weights);
  load_weights(executor, spec, weights);
}

}  // namespace headroom
