// A directory with a LoRA adapter as PEFT or headroom wrote it: adapter_config.json, adapter_model.safetensors.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "formats/safetensors.h"
#include "models/model_spec.h"
#include "passes/expert_adapters.h"
#include "passes/lora.h"
#include "planner/request.h"

namespace headroom {

struct AdapterFiles {
  SafetensorsFile tensors;
  int64_t rank = 0;
  double alpha = 0;
  double dropout = 0;
  bool rank_stabilised = false;
  bool decomposed = false;       // DoRA: the file also has magnitudes
  bool gate_up_doubled = false;  // experts' gate_up_proj has twice the rank and twice alpha
  std::string base;              // base_model_name_or_path, "" if absent

  // The factor of B A, for `times` the rank and alpha.
  double factor(int64_t times = 1) const;
};

// The key under which PEFT's rank_pattern and alpha_pattern give twice as much to the experts' parameter that replaces
// two modules.
inline constexpr std::string_view kGateUpPattern = ".*\\.gate_up_proj";

// The adapter of an experts' parameter, to which a weight belongs.
struct ExpertPair {
  ExpertWeight weight;
  int64_t experts = 0;
  int64_t rank = 0;  // of each expert's matrices
  int64_t in = 0;
  int64_t out = 0;  // of the parameter: gates and ups together
  double factor = 0;

  std::vector<int64_t> shape_a() const { return {experts * rank, in}; }
  std::vector<int64_t> shape_b() const { return {out, rank * experts}; }
  // The module whose lora_A and lora_B the file holds for it: that of the experts, or its base_layer if the other
  // parameter has an adapter too. Empty if there is none.
  std::string module_in(const AdapterFiles& adapter) const;
};

// For a weight of one expert [out, in] or of all [experts, out, in]; nothing for other weights.
std::optional<ExpertPair> expert_pair(const AdapterFiles& adapter, const WeightInfo& weight, int64_t experts);

// Limits of an adapter's files.
struct AdapterCaps {
  int64_t config_bytes = int64_t{4} << 20;
  int64_t header_bytes = kMaxHeaderBytes;
};

// Reads config and header. Throws Error(usage) for missing files, Error(format) for an adapter that is not LoRA, and
// for features that this version does not compute, by name: trained biases, ranks or alphas per module except for
// experts' gates and ups, embeddings' adapters and further initialisations that change the base.
AdapterFiles open_adapter(const std::filesystem::path& directory, const AdapterCaps& caps = {});

// Whether a model directory is an adapter: it has adapter_config.json and no config.json.
bool is_adapter_directory(const std::filesystem::path& directory);

// The base model's directory of an adapter: its base_model_name_or_path, absolute or relative to the adapter. Throws
// Error(usage) if there is none.
std::filesystem::path base_of_adapter(const std::filesystem::path& directory);

// The options that make a graph with exactly the adapter's matrices. Throws Error(format) naming a tensor that belongs
// to no weight of the model, has another shape than its weights require, or is missing.
LoraOptions lora_options(const AdapterFiles& adapter, const ModelSpec& spec);

// The options that train an adapter further: lora_options() with its dropout, which --lora-dropout replaces. `said`:
// the other --lora options; none, or the same rank. Throws as lora_options(), and Error(usage) for another rank, alpha,
// targets or modules to save.
LoraOptions continued_lora(const AdapterFiles& adapter, const ModelSpec& spec, const LoraOptions& said);

}  // namespace headroom
