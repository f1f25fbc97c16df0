#include "weights/adapter_files.h"

#include <map>

#include "base/error.h"
#include "formats/gguf_file.h"
#include "formats/json.h"
#include "weights/tied_head.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr const char *kLoraA = ".lora_A.weight", *kLoraB = ".lora_B.weight";

[[noreturn]] void refuse(const fs::path& file, const std::string& what) {
  throw Error(ErrorKind::format, fmt::format("{}: {}", file.string(), what), "give a LoRA adapter");
}

bool is_set(const Json& config, const char* key) {
  const auto at = config.find(key);
  if (at == config.end() || at->is_null()) return false;
  if (at->is_boolean()) return at->get<bool>();
  return !(at->is_object() || at->is_array()) || !at->empty();
}

// Whether `key` gives only gate_up_proj a value, and that is twice the adapter's own.
bool is_doubled(const Json& config, const char* key, const char* own) {
  const auto at = config.find(key);
  if (at == config.end() || !at->is_object() || at->size() != 1 || !config.contains(own)) return false;
  const Json value = at->value(std::string(kGateUpPattern), Json());
  return value.is_number() && config[own].is_number() && value.get<double>() == 2 * config[own].get<double>();
}

bool doubles_gate_up(const Json& config) {
  return is_doubled(config, "rank_pattern", "r") && is_doubled(config, "alpha_pattern", "lora_alpha");
}

// Separate ranks and alphas are accepted only as PEFT itself writes them: for experts' gates and ups together.
void refuse_patterns(const fs::path& file, const Json& config) {
  if (doubles_gate_up(config)) return;
  if (is_set(config, "rank_pattern")) refuse(file, "rank_pattern is set: modules have different ranks");
  if (is_set(config, "alpha_pattern")) refuse(file, "alpha_pattern is set: modules have different alphas");
}

// Features of PEFT's LoraConfig beyond two matrices of one rank.
void refuse_what_is_not_built(const fs::path& file, const Json& config) {
  constexpr std::pair<const char*, const char*> kOthers[] = {
      {"lora_bias", "biases in the adapter are not computed"},
      {"layer_replication", "layers are repeated"},
      {"alora_invocation_tokens", "the adapter acts on a part of the tokens only"},
      {"use_qalora", "groups of inputs are pooled"}};
  for (const auto& [key, why] : kOthers)
    if (is_set(config, key)) refuse(file, fmt::format("{} is set: {}", key, why));
  refuse_patterns(file, config);
  if (const auto bias = config.find("bias"); bias != config.end() && *bias != "none")
    refuse(file, "biases were trained");
  const auto start = config.find("init_lora_weights");
  if (start == config.end() || !start->is_string()) return;
  const std::string name = start->get<std::string>();
  for (const char* changing : {"pissa", "olora", "corda", "loftq"})
    if (name.starts_with(changing))
      refuse(file, fmt::format("init_lora_weights is {}: the base weights were changed", changing));
}

double dropout_of(const fs::path& file, const Json& config) {
  const Json dropout = config.value("lora_dropout", Json(0.0));
  if (dropout.is_null()) return 0;
  if (!dropout.is_number() || dropout.get<double>() < 0 || dropout.get<double>() >= 1)
    refuse(file, fmt::format("lora_dropout is {}", dropout.dump()));
  return dropout.get<double>();
}

}  // namespace

double AdapterFiles::factor(int64_t times) const {
  return adapter_factor(static_cast<double>(times) * alpha, times * rank, rank_stabilised);
}

AdapterFiles open_adapter(const fs::path& directory, const AdapterCaps& caps) {
  const fs::path file = directory / "adapter_config.json";
  const Json config = read_json(file, caps.config_bytes);
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
  return {SafetensorsFile::open(directory / "adapter_model.safetensors", caps.header_bytes),
          rank,
          config["lora_alpha"].get<double>(),
          dropout_of(file, config),
          is_set(config, "use_rslora"),
          is_set(config, "use_dora"),
          doubles_gate_up(config),
          text("base_model_name_or_path")};
}

bool is_adapter_directory(const fs::path& directory) {
  std::error_code status;
  return fs::exists(directory / "adapter_config.json", status) && !fs::exists(directory / "config.json", status);
}

fs::path base_of_adapter(const fs::path& directory) {
  const Json config = read_json(directory / "adapter_config.json", AdapterCaps().config_bytes);
  const Json named = config.is_object() ? config.value("base_model_name_or_path", Json()) : Json();
  const std::string base = named.is_string() ? named.get<std::string>() : std::string();
  std::error_code status;
  for (const fs::path& candidate : {fs::path(base), directory / base})
    if (!base.empty() && (fs::exists(candidate / "config.json", status) ||
                          (is_gguf(candidate) && fs::is_regular_file(candidate, status))))
      return candidate;
  throw Error(ErrorKind::usage,
              fmt::format("{} is an adapter of '{}', and there is no model of that name", directory.string(), base),
              "give --model BASE --adapter DIR");
}

std::string ExpertPair::module_in(const AdapterFiles& adapter) const {
  const std::string outer = std::string(kAdapterPrefix) + weight.module, inner = outer + ".base_layer";
  const bool nested = adapter.tensors.find(inner + kLoraA) != nullptr;
  if (nested) return weight.part == ExpertPart::down ? outer : inner;
  const StoredTensor *a = adapter.tensors.find(outer + kLoraA), *b = adapter.tensors.find(outer + kLoraB);
  return a && b && a->shape == shape_a() && b->shape == shape_b() ? outer : std::string();
}

std::optional<ExpertPair> expert_pair(const AdapterFiles& adapter, const WeightInfo& weight, int64_t experts) {
  const std::optional<ExpertWeight> expert = expert_weight(weight.name);
  if (!expert) return std::nullopt;
  const size_t matrix = weight.shape.size() - 2;
  const int64_t halves = expert->part == ExpertPart::down ? 1 : 2;
  const int64_t times = halves == 2 && adapter.gate_up_doubled ? 2 : 1;
  return ExpertPair{*expert,
                    experts,
                    times * adapter.rank,
                    weight.shape[matrix + 1],
                    halves * weight.shape[matrix],
                    adapter.factor(times)};
}

namespace {

// A tensor that an adapter's file may hold, and the target in lora_options() that it belongs to.
struct Wanted {
  std::vector<int64_t> shape;
  std::vector<std::string> targets;
  std::string saved;
};

std::map<std::string, Wanted> wanted_tensors(const AdapterFiles& adapter, const ModelSpec& spec) {
  std::map<std::string, Wanted> wanted;
  const bool transposed = spec.layout == "in_out";
  for (const WeightInfo& weight : model_weights(spec)) {
    const std::string module = weight.name.substr(0, weight.name.rfind('.'));
    if (const std::optional<ExpertPair> pair = expert_pair(adapter, weight, spec.experts.count)) {
      const std::string stored = pair->module_in(adapter);
      if (stored.empty()) continue;
      Wanted& a = wanted[stored + kLoraA];
      a.shape = pair->shape_a();
      a.targets.push_back(adapter.gate_up_doubled ? module : pair->weight.parameter());
      wanted[stored + kLoraB].shape = pair->shape_b();
      continue;
    }
    wanted[std::string(kAdapterPrefix) + transformers_name(weight.name)] = {weight.shape, {}, weight.name};
    if (weight.shape.size() != 2) continue;
    wanted[lora_name(weight.name, 'A')] = {{adapter.rank, weight.shape[transposed ? 0 : 1]}, {module}, {}};
    wanted[lora_name(weight.name, 'B')] = {{weight.shape[transposed ? 1 : 0], adapter.rank}, {}, {}};
    if (adapter.decomposed) wanted[magnitude_name(weight.name)] = {{weight.shape[transposed ? 1 : 0]}, {}, {}};
  }
  if (!spec.tied_head.empty()) wanted[tied_head_in_adapter(spec)] = {{spec.vocab, spec.hidden}, {}, {}};
  return wanted;
}

}  // namespace

LoraOptions lora_options(const AdapterFiles& adapter, const ModelSpec& spec) {
  LoraOptions options{adapter.rank, adapter.alpha, 0, adapter.rank_stabilised, {}, {}, adapter.decomposed};
  const std::map<std::string, Wanted> wanted = wanted_tensors(adapter, spec);
  check_tied_head(adapter.tensors, spec);
  const auto refuse_tensor = [&](const std::string& name, const std::string& what) {
    throw Error(ErrorKind::format, fmt::format("{}: '{}' {}", adapter.tensors.path().string(), name, what),
                "the adapter belongs to another model");
  };
  for (const auto& [name, tensor] : adapter.tensors.tensors()) {
    const auto at = wanted.find(name);
    if (at == wanted.end()) refuse_tensor(name, "belongs to no weight of the model");
    if (tensor.shape != at->second.shape)
      refuse_tensor(name, fmt::format("has shape [{}], the model asks for [{}]", fmt::join(tensor.shape, ", "),
                                      fmt::join(at->second.shape, ", ")));
    if (is_magnitude_name(name)) continue;
    if (!is_lora_name(name)) {
      if (!at->second.saved.empty()) options.modules_to_save.push_back(at->second.saved);
      continue;
    }
    const bool down = name.ends_with(".lora_A.weight");
    std::string other = name;
    other[other.size() - std::string_view("A.weight").size()] = down ? 'B' : 'A';
    if (!adapter.tensors.find(other)) refuse_tensor(other, "is missing");
    const std::string magnitude = magnitude_beside(name);
    if (adapter.decomposed && !adapter.tensors.find(magnitude))
      refuse_tensor(magnitude, "is missing, though use_dora is set");
    options.targets.insert(options.targets.end(), at->second.targets.begin(), at->second.targets.end());
  }
  return options;
}

LoraOptions continued_lora(const AdapterFiles& adapter, const ModelSpec& spec, const LoraOptions& said) {
  const LoraOptions fresh;
  LoraOptions options = lora_options(adapter, spec);
  const auto refuse_option = [&](const char* option, const std::string& value, const std::string& stored) {
    throw Error(ErrorKind::usage,
                fmt::format("{} {} contradicts --adapter {}, which has {}", option, value,
                            adapter.tensors.path().parent_path().string(), stored),
                fmt::format("leave {} out: the adapter keeps what it has", option));
  };
  if (said.rank != 0 && said.rank != options.rank)
    refuse_option("--lora-r", std::to_string(said.rank), std::to_string(options.rank));
  if (said.alpha != fresh.alpha && said.alpha != options.alpha)
    refuse_option("--lora-alpha", fmt::format("{}", said.alpha), fmt::format("{}", options.alpha));
  if (said.decomposed && !options.decomposed) refuse_option("--use-dora", "true", "no magnitudes");
  if (said.targets != fresh.targets)
    refuse_option("--lora-target-modules", fmt::format("{}", fmt::join(said.targets, " ")), "targets of its own");
  if (said.modules_to_save != fresh.modules_to_save)
    refuse_option("--modules-to-save", fmt::format("{}", fmt::join(said.modules_to_save, " ")), "modules of its own");
  options.dropout = said.dropout != fresh.dropout ? said.dropout : adapter.dropout;
  return options;
}

}  // namespace headroom
