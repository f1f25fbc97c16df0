#include "train/adapter_files.h"

#include <cmath>
#include <map>

#include "base/error.h"
#include "formats/json.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& file, const std::string& what) {
  throw Error(ErrorKind::format, fmt::format("{}: {}", file.string(), what), "give a LoRA adapter");
}

bool is_set(const Json& config, const char* key) {
  const auto at = config.find(key);
  if (at == config.end() || at->is_null()) return false;
  if (at->is_boolean()) return at->get<bool>();
  return !(at->is_object() || at->is_array()) || !at->empty();
}

// What PEFT's LoraConfig can ask for beyond the two matrices of one rank.
void refuse_what_is_not_built(const fs::path& file, const Json& config) {
  constexpr std::pair<const char*, const char*> kOthers[] = {
      {"use_dora", "magnitudes are not computed"},
      {"lora_bias", "biases in the adapter are not computed"},
      {"rank_pattern", "modules have ranks of their own"},
      {"alpha_pattern", "modules have alphas of their own"},
      {"layer_replication", "layers are repeated"},
      {"alora_invocation_tokens", "the adapter acts on a part of the tokens"},
      {"use_qalora", "groups of inputs are pooled"}};
  for (const auto& [key, why] : kOthers)
    if (is_set(config, key)) refuse(file, fmt::format("{} is set: {}", key, why));
  if (const auto bias = config.find("bias"); bias != config.end() && *bias != "none")
    refuse(file, "biases were trained");
  const auto start = config.find("init_lora_weights");
  if (start == config.end() || !start->is_string()) return;
  const std::string name = start->get<std::string>();
  for (const char* changing : {"pissa", "olora", "corda", "loftq"})
    if (name.starts_with(changing))
      refuse(file, fmt::format("init_lora_weights is {}: the base weights were changed", changing));
}

}  // namespace

double AdapterFiles::factor() const {
  const double divisor = static_cast<double>(rank);
  return alpha / (rank_stabilised ? std::sqrt(divisor) : divisor);
}

AdapterFiles open_adapter(const fs::path& directory) {
  const fs::path file = directory / "adapter_config.json";
  const Json config = read_json(file);
  const auto text = [&](const char* key) {
    return config.contains(key) && config[key].is_string() ? config[key].get<std::string>() : std::string();
  };
  if (!config.is_object() || text("peft_type") != "LORA") refuse(file, "peft_type is not LORA");
  refuse_what_is_not_built(file, config);
  if (!config.contains("r") || !config["r"].is_number_integer() || !config.contains("lora_alpha") ||
      !config["lora_alpha"].is_number())
    refuse(file, "r or lora_alpha is missing");
  const int64_t rank = config["r"].get<int64_t>();
  if (rank < 1 || rank > 1 << 20) refuse(file, fmt::format("r is {}", rank));
  return {SafetensorsFile::open(directory / "adapter_model.safetensors"), rank, config["lora_alpha"].get<double>(),
          is_set(config, "use_rslora"), text("base_model_name_or_path")};
}

bool is_adapter_directory(const fs::path& directory) {
  std::error_code status;
  return fs::exists(directory / "adapter_config.json", status) && !fs::exists(directory / "config.json", status);
}

fs::path base_of_adapter(const fs::path& directory) {
  const Json config = read_json(directory / "adapter_config.json");
  const Json named = config.is_object() ? config.value("base_model_name_or_path", Json()) : Json();
  const std::string base = named.is_string() ? named.get<std::string>() : std::string();
  std::error_code status;
  for (const fs::path& candidate : {fs::path(base), directory / base})
    if (!base.empty() && fs::exists(candidate / "config.json", status)) return candidate;
  throw Error(ErrorKind::usage,
              fmt::format("{} is an adapter of '{}', and there is no model of that name", directory.string(), base),
              "give --model BASE --adapter DIR");
}

LoraOptions lora_options(const AdapterFiles& adapter, const ModelSpec& spec) {
  LoraOptions options{adapter.rank, adapter.alpha, 0, adapter.rank_stabilised, {}, {}};
  std::map<std::string, std::vector<int64_t>> wanted;
  const bool transposed = spec.layout == "in_out";
  for (const WeightInfo& weight : model_weights(spec)) {
    wanted[std::string(kAdapterPrefix) + weight.name] = weight.shape;
    if (weight.shape.size() != 2) continue;
    wanted[lora_name(weight.name, 'A')] = {adapter.rank, weight.shape[transposed ? 0 : 1]};
    wanted[lora_name(weight.name, 'B')] = {weight.shape[transposed ? 1 : 0], adapter.rank};
  }
  const auto refuse_tensor = [&](const std::string& name, const std::string& what) {
    throw Error(ErrorKind::format, fmt::format("{}: '{}' {}", adapter.tensors.path().string(), name, what),
                "the adapter belongs to another model");
  };
  for (const auto& [name, tensor] : adapter.tensors.tensors()) {
    const auto at = wanted.find(name);
    if (at == wanted.end()) refuse_tensor(name, "belongs to no weight of the model");
    if (tensor.shape != at->second)
      refuse_tensor(name, fmt::format("has shape [{}], the model asks for [{}]", fmt::join(tensor.shape, ", "),
                                      fmt::join(at->second, ", ")));
    if (!is_lora_name(name)) {
      options.modules_to_save.push_back(name.substr(kAdapterPrefix.size()));
      continue;
    }
    const bool down = name.ends_with(".lora_A.weight");
    std::string other = name;
    other[other.size() - std::string_view("A.weight").size()] = down ? 'B' : 'A';
    if (!adapter.tensors.find(other)) refuse_tensor(other, "is missing");
    constexpr std::string_view kSuffix = ".lora_A.weight";
    if (down)
      options.targets.push_back(
          name.substr(kAdapterPrefix.size(), name.size() - kAdapterPrefix.size() - kSuffix.size()));
  }
  return options;
}

}  // namespace headroom
