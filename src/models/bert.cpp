// BERT and RoBERTa (Devlin et al. 2019, Liu et al. 2019): encoders with learnt positions and token types, LayerNorm
// after each sum, and heads for masked tokens or for classes.
#include "base/error.h"
#include "models/family.h"

namespace headroom {
namespace {

// What both share; `prefix` is "bert." or "roberta.".
void fill_encoder(const HfConfig& config, ModelSpec& spec, const std::string& prefix) {
  fill_geometry(config, spec);
  fill_padding(config, spec);
  fill_gelu(config, spec);
  if (config.boolean("is_decoder", false) || config.boolean("add_cross_attention", false) ||
      config.text("position_embedding_type", "absolute") != "absolute")
    config.refuse("model_type", "with a variant (is_decoder, add_cross_attention, position_embedding_type) not built",
                  "use an encoder with absolute positions");
  spec.windows.assign(spec.windows.size(), 0);
  spec.kv_heads = spec.heads;
  spec.dropout.embedding = spec.dropout.residual = dropout_rate(config, "hidden_dropout_prob");
  spec.dropout.attention = dropout_rate(config, "attention_probs_dropout_prob");
  spec.type_vocab = config.integer("type_vocab_size", 1, 1 << 16, 2);
  const std::string layer = prefix + "encoder.layer.{}.", embeddings = prefix + "embeddings.";
  spec.names = {{"embed", embeddings + "word_embeddings.weight"},
                {"positions", embeddings + "position_embeddings.weight"},
                {"types", embeddings + "token_type_embeddings.weight"},
                {"embed_norm", embeddings + "LayerNorm.weight"},
                {"q", layer + "attention.self.query.weight"},
                {"k", layer + "attention.self.key.weight"},
                {"v", layer + "attention.self.value.weight"},
                {"o", layer + "attention.output.dense.weight"},
                {"attn_sum_norm", layer + "attention.output.LayerNorm.weight"},
                {"up", layer + "intermediate.dense.weight"},
                {"down", layer + "output.dense.weight"},
                {"ffn_sum_norm", layer + "output.LayerNorm.weight"}};
  add_biases(spec, {"embed_norm", "q", "k", "v", "o", "attn_sum_norm", "up", "down", "ffn_sum_norm"});
  spec.optional_prefixes = {prefix};
  spec.ignored_suffixes = {"embeddings.position_ids"};
}

// The names of a family's heads. Masked LM: the layer before the tied projection, its norm, the projection and its
// bias. Classification: the layer on the first token, and the projection. `others`: the prefix of the masked-LM head's
// names.
struct HeadNames {
  std::string transform, transform_norm, decoder, bias;
  std::string pooler, classifier;
  std::string others;
};
void fill_head(const HfConfig& config, ModelSpec& spec, const std::string& prefix, const HeadNames& names) {
  if (spec.architecture.ends_with("ForMaskedLM")) {
    spec.objective = Objective::masked;
    spec.names["transform"] = names.transform + ".weight";
    spec.names["transform_norm"] = names.transform_norm + ".weight";
    spec.names["head"] = names.decoder + ".weight";
    spec.names["head_bias"] = names.bias;
    add_biases(spec, {"transform", "transform_norm"});
    for (const char* unused :
         {"pooler.dense.weight", "pooler.dense.bias", "cls.seq_relationship.weight", "cls.seq_relationship.bias"})
      spec.ignored_suffixes.emplace_back(unused);
    spec.ignored_suffixes.push_back(names.decoder + ".bias");
    if (spec.tied) spec.ignored_suffixes.push_back(names.decoder + ".weight");
    spec.ignored_prefixes = {"classifier."};
    return;
  }
  spec.objective = Objective::none;
  spec.names["pooler"] = prefix + "pooler.dense.weight";
  if (spec.architecture.ends_with("ForSequenceClassification")) {
    fill_classes(config, spec);
    spec.dropout.head = dropout_rate(config, "classifier_dropout", spec.dropout.residual);
    spec.ignored_prefixes = {names.others};
    if (!names.pooler.starts_with(prefix))
      spec.ignored_prefixes.insert(spec.ignored_prefixes.end(), {prefix + "pooler.", "pooler."});
    spec.names["pooler"] = names.pooler + ".weight";
    spec.names["head"] = names.classifier + ".weight";
    add_biases(spec, {"head"});
  }
  add_biases(spec, {"pooler"});
}

}  // namespace

void fill_bert(const HfConfig& config, ModelSpec& spec) {
  fill_encoder(config, spec, "bert.");
  spec.pad_id = config.integer("pad_token_id", 0, INT32_MAX, 0);
  fill_head(config, spec, "bert.",
            {"cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.decoder",
             "cls.predictions.bias", "bert.pooler.dense", "classifier", "cls."});
}

// Positions count the tokens that are not padding, from row pad_token_id + 1 on; padding uses row pad_token_id.
void fill_roberta(const HfConfig& config, ModelSpec& spec) {
  fill_encoder(config, spec, "roberta.");
  spec.pad_id = config.integer("pad_token_id", 0, INT32_MAX, 1);
  spec.first_position = spec.pad_id + 1;
  if (spec.first_position >= spec.max_positions)
    config.refuse("max_position_embeddings", fmt::format("but positions begin at {}", spec.first_position),
                  "correct config.json");
  spec.max_positions -= spec.first_position;
  fill_head(config, spec, "roberta.",
            {"lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias", "classifier.dense",
             "classifier.out_proj", "lm_head."});
  spec.dropout.head_input = true;
}

}  // namespace headroom
