#include "weights/adapter.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/counter_random.h"
#include "base/error.h"
#include "formats/atomic_dir.h"
#include "formats/json.h"
#include "formats/safetensors_writer.h"
#include "weights/adapter_files.h"
#include "weights/adapter_tensors.h"
#include "weights/tied_head.h"
#include "weights/weights.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

std::string last_parts(const std::string& name, size_t count) {
  size_t begin = name.size();
  for (; count > 0 && begin != std::string::npos; --count) begin = name.rfind('.', begin - 1);
  return begin == std::string::npos ? name : name.substr(begin + 1);
}

// The last `count` parts of the names if all names with that ending are adapted, else whole names.
std::vector<std::string> targets(const std::set<std::string>& adapted, const std::set<std::string>& all, size_t count) {
  std::set<std::string> others, found;
  for (const std::string& name : all)
    if (!adapted.contains(name)) others.insert(last_parts(name, count));
  for (const std::string& name : adapted) {
    const std::string end = last_parts(name, count);
    found.insert(others.contains(end) ? name : end);
  }
  return {found.begin(), found.end()};
}

// PEFT's target_modules and target_parameters. In layers with experts, transformers 5 has parameters for these and for
// the router instead of modules.
struct Targets {
  std::set<std::string> modules, all_modules, parameters, all_parameters;
  bool doubled = false;  // gate_up_proj has twice the rank
};

Targets targets_of(const Plan& plan, const ModelSpec& spec, const LoraOptions& options) {
  Targets found;
  std::set<std::string> routers, adapted;
  for (int64_t layer = 0; layer < spec.layers; ++layer)
    if (spec.has_experts(layer)) routers.insert(transformers_name(spec.name("router", layer)));
  for (const PersistentTensor& tensor : plan.tensors)
    if (is_lora_name(tensor.name)) adapted.insert(tensor.name);
  for (const PersistentTensor& tensor : plan.tensors) {
    if (tensor.role != Role::parameter || is_lora_name(tensor.name) || !tensor.name.ends_with(".weight")) continue;
    const std::optional<ExpertWeight> expert = expert_weight(tensor.name);
    const std::string name = transformers_name(tensor.name), module = name.substr(0, name.size() - 7);
    const bool parameter = expert || routers.contains(name);
    const std::string target = expert ? expert->parameter() : parameter ? name : module;
    (parameter ? found.all_parameters : found.all_modules).insert(target);
    const std::string a = expert ? expert_lora_a(*expert) : lora_name(tensor.name, 'A');
    if (!adapted.contains(a)) continue;
    (parameter ? found.parameters : found.modules).insert(target);
    if (expert && expert->part == ExpertPart::gate)
      found.doubled = found.doubled || plan.tensor(a)->place.type.dims.at(1) != options.rank;
  }
  return found;
}

// PEFT's entry for a gate_up_proj that replaces two modules: twice the rank and twice alpha.
void describe_experts(const Targets& targeted, const LoraOptions& options, Json& config) {
  config["target_parameters"] = targets(targeted.parameters, targeted.all_parameters, 3);
  if (!targeted.doubled) return;
  config["rank_pattern"] = Json{{std::string(kGateUpPattern), 2 * options.rank}};
  config["alpha_pattern"] = Json{{std::string(kGateUpPattern), 2 * options.alpha}};
}

Json adapter_config(const Plan& plan, const ModelFiles& model, const LoraOptions& options) {
  // An object from the start: the library cannot destroy a value that found no memory on its way to become one.
  Json config = Json::object();
  config["peft_type"] = "LORA";
  const bool classes = model.spec.objective == Objective::classification;
  config["task_type"] = classes                                       ? Json("SEQ_CLS")
                        : model.spec.objective == Objective::language ? Json("CAUSAL_LM")
                                                                      : Json(nullptr);
  config["base_model_name_or_path"] = fs::absolute(model.weights).lexically_normal().string();
  config["r"] = options.rank;
  config["lora_alpha"] = options.alpha;
  config["lora_dropout"] = options.dropout;
  config["use_rslora"] = options.rank_stabilised;
  config["use_dora"] = options.decomposed;
  const Targets targeted = targets_of(plan, model.spec, options);
  config["target_modules"] = targets(targeted.modules, targeted.all_modules, 1);
  if (!targeted.parameters.empty()) describe_experts(targeted, options, config);
  config["modules_to_save"] = options.modules_to_save.empty() ? Json(nullptr) : Json(options.modules_to_save);
  if (saves_tied_head(model.spec, options)) {
    config["modules_to_save"].push_back(tied_head_module(model.spec));
    config["ensure_weight_tying"] = true;
  }
  config["bias"] = "none";
  config["fan_in_fan_out"] = model.spec.layout == "in_out";
  config["inference_mode"] = true;
  return config;
}

// The file's tensors: those loaded from it, and a tied embedding also as the head.
std::vector<AdapterTensor> file_tensors(const Plan& plan, const ModelSpec& spec, const LoraOptions& options) {
  std::vector<AdapterTensor> tensors = adapter_tensors(plan, options);
  if (!saves_tied_head(spec, options)) return tensors;
  const std::string embedding = spec.name("embed");
  tensors.push_back({tied_head_in_adapter(spec), plan.tensor(embedding)->place.type.dims, {embedding}});
  return tensors;
}

}  // namespace

void init_adapter(Executor& executor, uint64_t seed) {
  for (const PersistentTensor& tensor : executor.plan().tensors) {
    if (!is_lora_name(tensor.name) || is_magnitude_name(tensor.name)) continue;
    const bool down = tensor.name.ends_with("lora_A.weight");
    const double bound = 1 / std::sqrt(static_cast<double>(tensor.place.type.dims.back()));
    const uint64_t key = mix64(seed) ^ hash_text(tensor.name);
    executor.write(executor.tensor(tensor.name), [&](int64_t first, std::span<std::byte> piece) {
      float* const values = reinterpret_cast<float*>(piece.data());
      for (size_t i = 0; i < piece.size() / sizeof(float); ++i) {
        const uint64_t at = static_cast<uint64_t>(first) + i;
        values[i] = down ? static_cast<float>(bound * (2 * unit_interval(mix64(key ^ at)) - 1)) : 0;
      }
    });
  }
  if (executor.plan().program(kStartMagnitudes)) executor.run(kStartMagnitudes, {});
}

void write_adapter(Executor& executor, const ModelFiles& model, const LoraOptions& options, const fs::path& directory) {
  SafetensorsWriter writer(directory / "adapter_model.safetensors");
  const std::vector<AdapterTensor> tensors = file_tensors(executor.plan(), model.spec, options);
  for (const AdapterTensor& tensor : tensors)
    writer.declare(tensor.name, stored_as(executor.tensor(tensor.parts[0]).dtype), tensor.shape);
  for (const AdapterTensor& tensor : tensors) write_adapter_tensor(executor, tensor, writer);
  writer.finish();
  write_text_durably(directory / "adapter_config.json", adapter_config(executor.plan(), model, options).dump(2) + "\n");
}

void load_adapter(Executor& executor, const LoraOptions& options, const fs::path& directory) {
  const SafetensorsFile file = SafetensorsFile::open(directory / "adapter_model.safetensors");
  for (const AdapterTensor& tensor : adapter_tensors(executor.plan(), options)) {
    const StoredTensor* stored = file.find(tensor.name);
    if (!stored || stored->shape != tensor.shape)
      throw Error(ErrorKind::format,
                  fmt::format("{}: tensor '{}' is missing, or not of shape [{}]", file.path().string(), tensor.name,
                              fmt::join(tensor.shape, ", ")),
                  "the adapter belongs to another model, or to other --lora options");
    read_adapter_tensor(executor, tensor, file, *stored);
  }
}

}  // namespace headroom
