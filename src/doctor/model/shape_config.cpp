// Reads shapes from a config.json leniently: all families' spellings, with the defaults of transformers' classes.
#include <algorithm>
#include <filesystem>
#include <initializer_list>

#include "base/error.h"
#include "doctor/model/model_shape.h"
#include "doctor/model/shape_count.h"
#include "formats/json.h"

namespace headroom::doctor {
namespace {

constexpr int64_t kLargest = int64_t{1} << 32;
constexpr int64_t kMaxConfigBytes = int64_t{4} << 20;

// The keys of a config.json, with those of a nested text model merged.
class Keys {
 public:
  Keys(const Json& raw, const std::string& source) : source_(source) {
    if (!raw.is_object())
      throw Error(ErrorKind::format, fmt::format("{}: not a JSON object but {}", source, raw.type_name()),
                  "give the config.json of a model");
    for (const char* nested : {"text_config", "llm_config", "language_config"})
      if (const auto it = raw.find(nested); it != raw.end() && it->is_object()) objects_.push_back(&*it);
    objects_.push_back(&raw);
    for (const char* nested : {"attn_config", "ffn_config"})
      if (const auto it = raw.find(nested); it != raw.end() && it->is_object()) objects_.push_back(&*it);
  }

  // The value of the first key that is present and not null.
  const Json* find(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      for (const Json* object : objects_)
        if (const auto it = object->find(name); it != object->end() && !it->is_null()) return &*it;
    return nullptr;
  }

  int64_t integer(std::initializer_list<const char*> names, int64_t fallback) const {
    const Json* value = find(names);
    if (value == nullptr || value->is_boolean() || value->is_array()) return fallback;
    const double number = value->is_number() ? value->get<double>() : -1;
    if (!(number >= 0 && number <= static_cast<double>(kLargest)))
      throw Error(ErrorKind::format,
                  fmt::format("{}: {} is not an integer from 0 to {}", source_, *names.begin(), kLargest),
                  "correct the config.json or download the model again");
    return static_cast<int64_t>(number);
  }

  double number(std::initializer_list<const char*> names, double fallback) const {
    const Json* value = find(names);
    return value != nullptr && value->is_number() ? value->get<double>() : fallback;
  }

  bool boolean(std::initializer_list<const char*> names, bool fallback) const {
    const Json* value = find(names);
    return value != nullptr && value->is_boolean() ? value->get<bool>() : fallback;
  }

  std::string text(std::initializer_list<const char*> names, const std::string& fallback) const {
    const Json* value = find(names);
    return value != nullptr && value->is_string() ? value->get<std::string>() : fallback;
  }

  const std::string& source() const { return source_; }

 private:
  std::vector<const Json*> objects_;
  std::string source_;
};

std::string first_architecture(const Keys& keys) {
  const Json* list = keys.find({"architectures"});
  return list != nullptr && list->is_array() && !list->empty() && (*list)[0].is_string() ? (*list)[0].get<std::string>()
                                                                                         : std::string();
}

void read_geometry(ModelShape& shape, const Keys& keys) {
  shape.layers = keys.integer({"num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers"}, 0);
  shape.hidden = keys.integer({"hidden_size", "n_embd", "d_model", "dim"}, 0);
  shape.heads = keys.integer({"num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads"}, 0);
  shape.vocab = keys.integer({"vocab_size", "padded_vocab_size"}, 0);
  if (shape.layers == 0 || shape.hidden == 0 || shape.heads == 0)
    throw Error(ErrorKind::format,
                fmt::format("{}: no layers, hidden size or attention heads are stated (model_type {})", keys.source(),
                            shape.family.empty() ? "missing" : shape.family),
                "give the number of parameters with --params");
  shape.kv_heads = keys.integer({"num_key_value_heads", "num_kv_heads", "kv_n_heads", "n_head_kv"}, shape.heads);
  if (keys.boolean({"multi_query"}, false) && !keys.boolean({"new_decoder_architecture"}, false)) shape.kv_heads = 1;
  shape.kv_heads = std::clamp<int64_t>(shape.kv_heads, 1, shape.heads);
  shape.head_dim = keys.integer({"head_dim", "d_kv"}, shape.hidden / shape.heads);
  shape.intermediate = keys.integer(
      {"intermediate_size", "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size", "hidden_dim", "decoder_ffn_dim"},
      4 * shape.hidden);
  shape.max_positions = keys.integer({"max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx"},
                                     shape.family == "bloom" ? 2048 : 1024);
}

void read_experts(ModelShape& shape, const Keys& keys, CountOptions& options) {
  shape.experts = keys.integer({"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"}, 0);
  if (shape.experts <= 1) {
    shape.experts = 0;
    return;
  }
  shape.experts_per_token = std::clamp<int64_t>(
      keys.integer({"num_experts_per_tok", "moe_top_k", "num_experts_per_token"}, 2), 1, shape.experts);
  shape.moe_intermediate = keys.integer({"moe_intermediate_size"}, shape.intermediate);
  shape.dense_layers = std::min(shape.layers, keys.integer({"first_k_dense_replace"}, 0));
  shape.shared_intermediate = keys.integer({"shared_expert_intermediate_size"}, 0);
  options.shared_expert_gate = shape.shared_intermediate > 0;
  if (const int64_t shared = keys.integer({"n_shared_experts"}, 0); shared > 0)
    shape.shared_intermediate = shared * shape.moe_intermediate;
  options.router_bias = shape.family == "deepseek_v3";  // the bias of its load balancing without an auxiliary loss
}

void read_latent_attention(ModelShape& shape, const Keys& keys, CountOptions& options) {
  options.key_value_rank = keys.integer({"kv_lora_rank"}, 0);
  if (options.key_value_rank == 0) return;
  options.query_rank = keys.integer({"q_lora_rank"}, 0);
  options.nope_head_dim = keys.integer({"qk_nope_head_dim"}, 128);
  options.rope_head_dim = keys.integer({"qk_rope_head_dim"}, 64);
  shape.head_dim = options.nope_head_dim + options.rope_head_dim;
  shape.value_head_dim = keys.integer({"v_head_dim"}, 128);
  shape.kv_latent = options.key_value_rank + options.rope_head_dim;
}

void read_window(ModelShape& shape, const Keys& keys, const FamilyFacts& facts) {
  if (facts.window_switch && !keys.boolean({"use_sliding_window"}, false)) return;
  shape.sliding_window = keys.integer({"sliding_window"}, 0);
  if (shape.sliding_window == 0 || shape.sliding_window >= shape.max_positions) {
    shape.sliding_window = 0;
    return;
  }
  shape.windowed_layers = shape.layers;
  if (shape.family == "gemma2") shape.windowed_layers = shape.layers / 2;
  if (const int64_t pattern = keys.integer({"sliding_window_pattern"}, 0); pattern > 0)
    shape.windowed_layers = shape.layers - shape.layers / pattern;
  if (const Json* types = keys.find({"layer_types"}); types != nullptr && types->is_array())
    shape.windowed_layers = std::count(types->begin(), types->end(), Json("sliding_attention"));
}

// Applies what a config.json overrides.
void override_facts(ModelShape& shape, const Keys& keys, FamilyFacts& facts, CountOptions& options) {
  const std::string activation =
      keys.text({"hidden_activation", "hidden_act", "activation_function", "feed_forward_proj", "dense_act_fn"},
                std::string(facts.activation));
  if (activation.rfind("gated-", 0) == 0) facts.mlp = MlpKind::gated;
  if (shape.family == "dinov2" && keys.boolean({"use_swiglu_ffn"}, false)) facts.mlp = MlpKind::gated;
  if (shape.family == "falcon" && keys.boolean({"new_decoder_architecture"}, false)) facts.norms_per_layer = 2;
  if (shape.family == "gpt_neox") facts.parallel_residual = keys.boolean({"use_parallel_residual"}, true);
  if (shape.family == "stablelm") facts.qkv_bias = keys.boolean({"use_qkv_bias"}, false);
  options.attention_bias = keys.boolean({"attention_bias"}, false) && !facts.qkv_bias;
  options.mlp_bias = keys.boolean({"mlp_bias"}, false);
  take_facts(shape, facts);
  shape.activation = activation;
  shape.tied = keys.boolean({"tie_word_embeddings"}, facts.tied);
  shape.encoder_decoder = facts.encoder_decoder || keys.boolean({"is_encoder_decoder"}, false);
  shape.attention_dropout =
      keys.number({"attention_probs_dropout_prob", "attn_pdrop", "attention_dropout", "dropout_rate"}, facts.dropout);
  shape.hidden_dropout =
      keys.number({"hidden_dropout_prob", "resid_pdrop", "hidden_dropout", "dropout", "dropout_rate"}, facts.dropout);
  if (shape.encoder_decoder) shape.encoder_layers = keys.integer({"encoder_layers", "num_layers"}, shape.layers);
  if (shape.encoder_decoder) shape.layers = keys.integer({"num_decoder_layers", "decoder_layers"}, shape.layers);
}

void read_heads(ModelShape& shape, const Keys& keys, CountOptions& options) {
  const std::string architecture = first_architecture(keys);
  const auto has = [&](const char* part) { return architecture.find(part) != std::string::npos; };
  if (has("ForSequenceClassification") || has("ForTokenClassification") || has("ForImageClassification")) {
    const Json* names = keys.find({"id2label"});
    const int64_t named = names != nullptr && names->is_object() ? static_cast<int64_t>(names->size()) : 2;
    shape.labels = std::max<int64_t>(1, keys.integer({"num_labels"}, named));
  }
  const bool bert_like = shape.encoder_only && shape.vocab > 0;
  if (bert_like && shape.family != "distilbert") {
    options.token_types = keys.integer({"type_vocab_size"}, 2);
    options.mlm_head = has("ForMaskedLM");
    options.pooler = !options.mlm_head && (has("Model") || has("ForSequenceClassification") || architecture.empty());
  }
  if (const int64_t width = keys.integer({"word_embed_proj_dim"}, shape.hidden); width != shape.hidden)
    options.embedding_width = width;
}

ModelShape shape_of(const Json& raw, const std::string& source) {
  const Keys keys(raw, source);
  ModelShape shape;
  shape.name = source;
  shape.family = keys.text({"model_type"}, "");
  FamilyFacts facts = facts_or_llama(shape.family);
  CountOptions options;
  read_geometry(shape, keys);
  override_facts(shape, keys, facts, options);
  read_heads(shape, keys, options);
  read_experts(shape, keys, options);
  read_latent_attention(shape, keys, options);
  read_window(shape, keys, facts);
  shape.stored_dtype = keys.text({"dtype", "torch_dtype"}, "float32");
  if (shape.stored_dtype.rfind("torch.", 0) == 0) shape.stored_dtype.erase(0, 6);
  count_parameters(shape, facts, options);
  return shape;
}

}  // namespace

ModelShape parse_model_shape(const std::string& text, const std::string& source) {
  return shape_of(parse_json(text, source), source);
}

std::optional<ModelShape> find_model_shape(const std::string& name_or_path) {
  std::error_code status;
  std::filesystem::path file = name_or_path;
  if (std::filesystem::is_directory(file, status)) file /= "config.json";
  if (std::filesystem::is_regular_file(file, status)) {
    ModelShape shape = shape_of(read_json(file, kMaxConfigBytes), file.string());
    const std::string folder = file.parent_path().filename().string();
    if (file.filename() == "config.json" && !folder.empty()) shape.name = folder;
    return shape;
  }
  return find_in_table(name_or_path);
}

}  // namespace headroom::doctor
