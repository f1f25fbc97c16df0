#include "train/adapter.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/counter_random.h"
#include "base/error.h"
#include "formats/atomic_dir.h"
#include "formats/json.h"
#include "formats/safetensors_writer.h"
#include "train/adapter_files.h"
#include "train/weights.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

bool is_saved_module(const std::string& name, const LoraOptions& options) {
  return !name.ends_with("#bf16") &&
         std::any_of(options.modules_to_save.begin(), options.modules_to_save.end(),
                     [&](const std::string& module) { return pattern_means(module, name); });
}

// The name in the adapter's file; empty for what stays in the base model.
std::string stored_name(const PersistentTensor& tensor, const LoraOptions& options) {
  if (tensor.role != Role::parameter) return {};
  if (is_lora_name(tensor.name)) return tensor.name;
  return is_saved_module(tensor.name, options) ? std::string(kAdapterPrefix) + tensor.name : std::string();
}

std::string module_of(const std::string& lora) {
  return lora.substr(kAdapterPrefix.size(),
                     lora.size() - kAdapterPrefix.size() - std::string_view(".lora_A.weight").size());
}

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// PEFT's target_modules: last parts of names where every module of that name has an adapter, else whole names.
std::vector<std::string> target_modules(const Plan& plan) {
  std::set<std::string> adapted, others, targets;
  for (const PersistentTensor& tensor : plan.tensors)
    if (is_lora_name(tensor.name) && tensor.name.ends_with("A.weight")) adapted.insert(module_of(tensor.name));
  for (const PersistentTensor& tensor : plan.tensors)
    if (tensor.role == Role::parameter && !is_lora_name(tensor.name) && tensor.name.ends_with(".weight"))
      if (const std::string module = tensor.name.substr(0, tensor.name.size() - 7); !adapted.contains(module))
        others.insert(last_part(module));
  for (const std::string& module : adapted)
    targets.insert(others.contains(last_part(module)) ? module : last_part(module));
  return {targets.begin(), targets.end()};
}

Json adapter_config(const Plan& plan, const ModelFiles& model, const LoraOptions& options) {
  Json config;
  config["peft_type"] = "LORA";
  const bool classes = model.spec.objective == Objective::classification;
  config["task_type"] = classes                                       ? Json("SEQ_CLS")
                        : model.spec.objective == Objective::language ? Json("CAUSAL_LM")
                                                                      : Json(nullptr);
  config["base_model_name_or_path"] = fs::absolute(model.directory).lexically_normal().string();
  config["r"] = options.rank;
  config["lora_alpha"] = options.alpha;
  config["lora_dropout"] = options.dropout;
  config["use_rslora"] = options.rank_stabilised;
  config["target_modules"] = target_modules(plan);
  config["modules_to_save"] = options.modules_to_save.empty() ? Json(nullptr) : Json(options.modules_to_save);
  config["bias"] = "none";
  config["fan_in_fan_out"] = model.spec.layout == "in_out";
  config["inference_mode"] = true;
  return config;
}

}  // namespace

void init_adapter(Executor& executor, uint64_t seed) {
  for (const PersistentTensor& tensor : executor.plan().tensors) {
    if (!is_lora_name(tensor.name)) continue;
    const bool down = tensor.name.ends_with("lora_A.weight");
    const double bound = 1 / std::sqrt(static_cast<double>(tensor.place.type.dims.at(1)));
    const uint64_t key = mix64(seed) ^ hash_text(tensor.name);
    executor.write(executor.tensor(tensor.name), [&](int64_t first, std::span<std::byte> piece) {
      float* const values = reinterpret_cast<float*>(piece.data());
      for (size_t i = 0; i < piece.size() / sizeof(float); ++i) {
        const uint64_t at = static_cast<uint64_t>(first) + i;
        values[i] = down ? static_cast<float>(bound * (2 * unit_interval(mix64(key ^ at)) - 1)) : 0;
      }
    });
  }
}

void write_adapter(Executor& executor, const ModelFiles& model, const LoraOptions& options, const fs::path& directory) {
  SafetensorsWriter writer(directory / "adapter_model.safetensors");
  for (const PersistentTensor& tensor : executor.plan().tensors)
    if (const std::string name = stored_name(tensor, options); !name.empty())
      writer.declare(name, stored_as(tensor.place.type.dtype), tensor.place.type.dims);
  for (const PersistentTensor& tensor : executor.plan().tensors)
    if (const std::string name = stored_name(tensor, options); !name.empty()) {
      const TensorView view = executor.tensor(tensor.name);
      write_tensor(writer, name, executor, view, stored_as(view.dtype), {});
    }
  writer.finish();
  write_text_durably(directory / "adapter_config.json", adapter_config(executor.plan(), model, options).dump(2) + "\n");
}

void load_adapter(Executor& executor, const LoraOptions& options, const fs::path& directory) {
  const SafetensorsFile file = SafetensorsFile::open(directory / "adapter_model.safetensors");
  for (const PersistentTensor& tensor : executor.plan().tensors) {
    const std::string name = stored_name(tensor, options);
    if (name.empty()) continue;
    const StoredTensor* stored = file.find(name);
    if (!stored || stored->shape != tensor.place.type.dims)
      throw Error(ErrorKind::format,
                  fmt::format("{}: tensor '{}' is missing, or not of shape [{}]", file.path().string(), name,
                              fmt::join(tensor.place.type.dims, ", ")),
                  "the adapter belongs to another model, or to other --lora options");
    read_tensor(executor, file, *stored, executor.tensor(tensor.name));
  }
}

}  // namespace headroom
