#include "models/family.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace headroom {
namespace {

constexpr Family kFamilies[] = {
    {"llama", "LlamaForCausalLM", fill_llama},
    {"qwen2", "Qwen2ForCausalLM", fill_qwen2},
    {"mistral", "MistralForCausalLM", fill_mistral},
    {"gpt2", "GPT2LMHeadModel", fill_gpt2},
    {"qwen3", "Qwen3ForCausalLM", fill_qwen3},
    {"olmo2", "Olmo2ForCausalLM", fill_olmo2},
    {"gemma2", "Gemma2ForCausalLM", fill_gemma2},
    {"gemma3_text", "Gemma3ForCausalLM", fill_gemma3},
    {"gpt_neox", "GPTNeoXForCausalLM", fill_gpt_neox},
    {"phi3", "Phi3ForCausalLM", fill_phi3},
    {"starcoder2", "Starcoder2ForCausalLM", fill_starcoder2},
    {"mixtral", "MixtralForCausalLM", fill_mixtral},
    {"qwen3_moe", "Qwen3MoeForCausalLM", fill_qwen3_moe},
    {"gpt_neox", "GPTNeoXForSequenceClassification", fill_gpt_neox},
    {"bert", "BertForMaskedLM", fill_bert},
    {"bert", "BertForSequenceClassification", fill_bert},
    {"bert", "BertModel", fill_bert},
    {"roberta", "RobertaForMaskedLM", fill_roberta},
    {"roberta", "RobertaForSequenceClassification", fill_roberta},
    {"roberta", "RobertaModel", fill_roberta},
};

std::string supported_families() {
  std::string list;
  for (const Family& family : kFamilies)
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", family.model_type, family.architecture);
  return list;
}

// The row of the class that config.json names; without a class, the first row of its model_type.
const Family& find_family(const HfConfig& config) {
  std::string built;
  const auto& classes = config.architectures;
  for (const Family& family : kFamilies) {
    if (family.model_type != config.model_type) continue;
    if (classes.empty() || std::find(classes.begin(), classes.end(), family.architecture) != classes.end())
      return family;
    built += fmt::format("{}{}", built.empty() ? "" : ", ", family.architecture);
  }
  if (!built.empty())
    config.refuse("architectures", fmt::format("but of {} only {} is built", config.model_type, built),
                  "use the checkpoint of a class that is built");
  config.refuse("model_type", "a family that this version does not build", "families built: " + supported_families());
}

const FamilyFacts& facts_of(std::string_view model_type) {
  const FamilyFacts* facts = find_family_facts(model_type);
  HR_CHECK(facts != nullptr, "{} is not in the table of formats/model_families.cpp", model_type);
  return *facts;
}

// What every model of the family has.
void take_facts(ModelSpec& spec) {
  const FamilyFacts& facts = facts_of(spec.family);
  spec.norm = facts.norm;
  spec.mlp = facts.mlp;
  spec.positions = facts.positions;
  spec.qk_norm_whole = facts.query_key_norm == QueryKeyNorm::full_width;
  spec.parallel_residual = facts.parallel_residual;
  spec.causal = !facts.encoder_only;
}

void check_geometry(const HfConfig& config, const ModelSpec& spec) {
  if (spec.heads % spec.kv_heads != 0)
    config.refuse("num_key_value_heads", fmt::format("which does not divide num_attention_heads {}", spec.heads),
                  "correct config.json");
  if (!config.has("head_dim") && spec.hidden % spec.heads != 0)
    config.refuse("num_attention_heads", fmt::format("which does not divide hidden_size {}", spec.hidden),
                  "correct config.json, or state head_dim");
  if (spec.positions == PositionKind::rotary && (spec.rotary_dim % 2 != 0 || spec.rotary_dim < 2))
    config.refuse("head_dim", fmt::format("odd or nothing: rotary embeddings pair {} channels", spec.rotary_dim),
                  "correct config.json");
  const auto factors = static_cast<int64_t>(spec.rope_scaling.long_factors.size());
  if (spec.rope_scaling.type == RopeType::longrope &&
      (factors != spec.rotary_dim / 2 ||
       spec.rope_scaling.short_factors.size() != spec.rope_scaling.long_factors.size()))
    config.refuse("rope_scaling", fmt::format("whose factors are not one per pair of {} channels", spec.rotary_dim),
                  "correct config.json");
}

}  // namespace

std::span<const Family> families() { return kFamilies; }

void fill_geometry(const HfConfig& config, ModelSpec& spec) {
  spec.layers = config.layers();
  spec.hidden = config.hidden_size();
  spec.heads = config.heads();
  spec.kv_heads = config.kv_heads();
  spec.head_dim = config.head_dim();
  spec.intermediate = config.intermediate_size();
  spec.vocab = config.vocab_size();
  spec.max_positions = std::min(config.max_positions(), kMostPositions);
  spec.norm_epsilon = config.norm_epsilon();
  spec.tied = config.tied();
  spec.initializer_range = config.initializer_range();
  spec.dropout.attention = dropout_rate(config, "attention_dropout");
  spec.windows.assign(static_cast<size_t>(spec.layers), 0);
  for (int64_t layer = 0; layer < spec.layers; ++layer)
    spec.windows[static_cast<size_t>(layer)] = config.sliding_window(layer).value_or(0);
}

// Follows nn.Embedding's padding_idx: a negative id counts from the table's end. An id outside the table is ignored: no
// token has it (transformers refuses it).
void fill_padding(const HfConfig& config, ModelSpec& spec) {
  const std::optional<int64_t> pad = config.pad_id();
  if (!pad) return;
  const int64_t row = *pad < 0 ? *pad + spec.vocab : *pad;
  if (row >= 0 && row < spec.vocab) spec.padding_row = row;
}

void fill_rotary(const HfConfig& config, ModelSpec& spec, std::string_view layer_type) {
  spec.rope_theta = config.rope_theta(layer_type);
  spec.rope_scaling = config.rope_scaling(layer_type);
  spec.rotary_dim = static_cast<int64_t>(static_cast<double>(spec.head_dim) * config.rotary_fraction());
}

double dropout_rate(const HfConfig& config, std::string_view key, std::optional<double> fallback) {
  return config.number(key, 0, 0.999, fallback.value_or(facts_of(config.model_type).dropout));
}

void require_silu(const HfConfig& config) {
  if (config.activation() != "silu")
    config.refuse("hidden_act", "but this family is built with silu only", "use a checkpoint with silu");
}

void fill_gelu(const HfConfig& config, ModelSpec& spec) {
  const std::string activation = config.activation();
  if (activation == "gelu_new" || activation == "gelu_pytorch_tanh" || activation == "gelu_fast")
    spec.activation = "gelu_tanh";
  else if (activation == "gelu")
    spec.activation = "gelu";
  else
    config.refuse(config.has("hidden_activation")     ? "hidden_activation"
                  : config.has("activation_function") ? "activation_function"
                                                      : "hidden_act",
                  "but this family is built with gelu, gelu_new, gelu_fast or gelu_pytorch_tanh only",
                  "use a checkpoint with one of these");
}

void fill_classes(const HfConfig& config, ModelSpec& spec) {
  const bool named = config.has("id2label") && config.raw["id2label"].is_object();
  const auto labels = named ? static_cast<int64_t>(config.raw["id2label"].size()) : 2;
  spec.objective = Objective::classification;
  spec.classes = config.integer("num_labels", 1, 1 << 20, labels);
  const std::string problem = config.text("problem_type", "single_label_classification");
  if (problem != "single_label_classification")
    config.refuse("problem_type", "but only single_label_classification is built",
                  "use a checkpoint with one class per text");
  if (spec.classes < 2)
    config.refuse(config.has("num_labels") ? "num_labels" : "id2label", "but classification needs two classes",
                  "use a checkpoint that classifies; regression is not built");
}

static void take_quantization(const HfConfig& config, ModelSpec& spec) {
  if (!config.quantized()) return;
  spec.quantization = config.quantization_method();
  spec.weight_codes = config.weight_codes();
  spec.embedding_codes = config.embedding_codes();
  spec.head_codes = config.head_codes();
}

ModelSpec read_model_spec(const HfConfig& config) {
  const Family& family = find_family(config);
  ModelSpec spec;
  spec.family = family.model_type;
  spec.architecture = family.architecture;
  take_quantization(config, spec);
  take_facts(spec);
  family.fill(config, spec);
  if (spec.objective != Objective::language && spec.objective != Objective::masked) spec.tied = false;
  if (spec.tied) {
    if (const auto head = spec.names.find("head"); head != spec.names.end()) spec.tied_head = head->second;
    spec.names.erase("head");
  }
  check_geometry(config, spec);
  return spec;
}

std::string ModelSpec::name(std::string_view role, int64_t layer) const {
  const auto at = names.find(role);
  HR_CHECK(at != names.end(), "{} has no weight for '{}'", family, role);
  std::string out = at->second;
  if (const size_t hole = out.find("{}"); hole != std::string::npos) out.replace(hole, 2, std::to_string(layer));
  return out;
}

}  // namespace headroom
