#include "doctor/model/shape_family.h"

#include <array>

namespace headroom::doctor {
namespace {

// LayerNorm decoders of the GPT kind share most of their traits.
constexpr FamilyTraits gpt_like(const char* name) {
  FamilyTraits t{name};
  t.rms_norm = false;
  t.norm_bias = true;
  t.gated_mlp = false;
  t.qkv_bias = t.output_bias = t.mlp_bias = true;
  t.activation = "gelu";
  return t;
}

constexpr FamilyTraits gpt2(const char* name) {
  FamilyTraits t = gpt_like(name);
  t.positions = Positions::learned;
  t.tied = true;
  t.activation = "gelu_new";
  t.dropout = 0.1;
  return t;
}

constexpr FamilyTraits gptj(const char* name) {
  FamilyTraits t = gpt_like(name);
  t.norms_per_layer = 1;
  t.parallel_residual = true;
  t.qkv_bias = t.output_bias = false;
  t.head_bias = true;
  t.activation = "gelu_new";
  return t;
}

constexpr FamilyTraits neox(const char* name) {
  FamilyTraits t = gpt_like(name);
  t.parallel_residual = true;
  return t;
}

constexpr FamilyTraits phi(const char* name) {
  FamilyTraits t = gpt_like(name);
  t.norms_per_layer = 1;
  t.parallel_residual = true;
  t.head_bias = true;
  t.activation = "gelu_new";
  return t;
}

constexpr FamilyTraits opt(const char* name) {
  FamilyTraits t = gpt_like(name);
  t.positions = Positions::learned;
  t.tied = true;
  t.activation = "relu";
  t.dropout = 0.1;
  return t;
}

constexpr FamilyTraits falcon(const char* name) {
  FamilyTraits t = gpt_like(name);
  t.qkv_bias = t.output_bias = t.mlp_bias = false;
  t.norms_per_layer = 1;
  t.parallel_residual = true;
  t.tied = true;
  return t;
}

constexpr FamilyTraits bloom(const char* name) {
  FamilyTraits t = gpt_like(name);
  t.positions = Positions::relative;
  t.embedding_norm = true;
  t.tied = true;
  t.activation = "gelu_python_tanh";
  return t;
}

constexpr FamilyTraits starcoder2(const char* name) {
  FamilyTraits t = gpt_like(name);
  t.tied = true;
  t.activation = "gelu_pytorch_tanh";
  return t;
}

constexpr FamilyTraits mpt(const char* name) {
  FamilyTraits t = gpt_like(name);
  t.norm_bias = false;
  t.qkv_bias = t.output_bias = t.mlp_bias = false;
  t.positions = Positions::relative;
  t.tied = true;
  return t;
}

constexpr FamilyTraits stablelm(const char* name) {
  FamilyTraits t{name};
  t.rms_norm = false;
  t.norm_bias = true;
  return t;
}

constexpr FamilyTraits cohere(const char* name) {
  FamilyTraits t{name};
  t.rms_norm = false;
  t.norms_per_layer = 1;
  t.parallel_residual = true;
  t.tied = true;
  return t;
}

constexpr FamilyTraits dbrx(const char* name) {
  FamilyTraits t{name};
  t.rms_norm = false;
  return t;
}

constexpr FamilyTraits with_qkv_bias(const char* name) {
  FamilyTraits t{name};
  t.qkv_bias = true;
  return t;
}

constexpr FamilyTraits with_query_key_norm(const char* name, QueryKeyNorm kind) {
  FamilyTraits t{name};
  t.query_key_norm = kind;
  return t;
}

constexpr FamilyTraits gemma(const char* name, int norms, QueryKeyNorm kind) {
  FamilyTraits t{name};
  t.norms_per_layer = norms;
  t.query_key_norm = kind;
  t.tied = true;
  t.activation = "gelu_pytorch_tanh";
  return t;
}

constexpr FamilyTraits bert(const char* name) {
  FamilyTraits t = gpt_like(name);
  t.positions = Positions::learned;
  t.embedding_norm = true;
  t.final_norm = false;
  t.tied = true;
  t.encoder_only = true;
  t.dropout = 0.1;
  return t;
}

constexpr FamilyTraits vit(const char* name) {
  FamilyTraits t = gpt_like(name);
  t.positions = Positions::learned;
  t.encoder_only = true;
  return t;
}

constexpr FamilyTraits t5(const char* name) {
  FamilyTraits t{name};
  t.gated_mlp = false;
  t.positions = Positions::relative;
  t.tied = true;
  t.encoder_decoder = true;
  t.activation = "relu";
  t.dropout = 0.1;
  return t;
}

constexpr std::array kFamilies{
    FamilyTraits{"llama"},
    FamilyTraits{"mistral"},
    FamilyTraits{"mixtral"},
    FamilyTraits{"granite"},
    FamilyTraits{"phi3"},
    FamilyTraits{"deepseek_v2"},
    FamilyTraits{"deepseek_v3"},
    with_qkv_bias("qwen2"),
    with_qkv_bias("qwen2_moe"),
    with_qkv_bias("qwen"),
    with_query_key_norm("qwen3", QueryKeyNorm::per_head),
    with_query_key_norm("qwen3_moe", QueryKeyNorm::per_head),
    with_query_key_norm("olmo2", QueryKeyNorm::full_width),
    with_query_key_norm("olmo3", QueryKeyNorm::full_width),
    with_query_key_norm("olmoe", QueryKeyNorm::full_width),
    gemma("gemma", 2, QueryKeyNorm::none),
    gemma("gemma2", 4, QueryKeyNorm::none),
    gemma("gemma3_text", 4, QueryKeyNorm::per_head),
    gemma("gemma3", 4, QueryKeyNorm::per_head),
    gpt2("gpt2"),
    gpt2("gpt_bigcode"),
    gptj("gptj"),
    neox("gpt_neox"),
    phi("phi"),
    phi("phi-msft"),
    opt("opt"),
    falcon("falcon"),
    bloom("bloom"),
    starcoder2("starcoder2"),
    mpt("mpt"),
    stablelm("stablelm"),
    cohere("cohere"),
    dbrx("dbrx"),
    bert("bert"),
    bert("roberta"),
    bert("xlm-roberta"),
    bert("camembert"),
    bert("distilbert"),
    bert("electra"),
    vit("vit"),
    vit("dinov2"),
    t5("t5"),
    t5("mt5"),
};

}  // namespace

FamilyTraits family_traits(const std::string& model_type, bool* known) {
  for (const FamilyTraits& traits : kFamilies)
    if (model_type == traits.model_type) {
      if (known != nullptr) *known = true;
      return traits;
    }
  if (known != nullptr) *known = false;
  return FamilyTraits{"llama"};
}

}  // namespace headroom::doctor
