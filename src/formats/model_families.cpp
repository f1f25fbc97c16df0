// The table of families, with the properties of their classes in transformers.
#include "formats/model_families.h"

#include <array>

namespace headroom {
namespace {

// GPT-like decoders with LayerNorm share most of their properties.
constexpr FamilyFacts gpt_like(std::string_view model_type) {
  FamilyFacts f{model_type};
  f.norm = NormKind::layer;
  f.norm_bias = true;
  f.mlp = MlpKind::plain;
  f.qkv_bias = f.output_bias = f.mlp_bias = true;
  f.activation = "gelu";
  return f;
}

constexpr FamilyFacts gpt2(std::string_view model_type) {
  FamilyFacts f = gpt_like(model_type);
  f.positions = PositionKind::learned;
  f.tied = true;
  f.activation = "gelu_new";
  f.dropout = 0.1;
  return f;
}

constexpr FamilyFacts gptj(std::string_view model_type) {
  FamilyFacts f = gpt_like(model_type);
  f.norms_per_layer = 1;
  f.parallel_residual = true;
  f.qkv_bias = f.output_bias = false;
  f.head_bias = true;
  f.activation = "gelu_new";
  return f;
}

constexpr FamilyFacts neox(std::string_view model_type) {
  FamilyFacts f = gpt_like(model_type);
  f.parallel_residual = true;
  return f;
}

constexpr FamilyFacts phi(std::string_view model_type) {
  FamilyFacts f = gpt_like(model_type);
  f.norms_per_layer = 1;
  f.parallel_residual = true;
  f.head_bias = true;
  f.activation = "gelu_new";
  return f;
}

constexpr FamilyFacts opt(std::string_view model_type) {
  FamilyFacts f = gpt_like(model_type);
  f.positions = PositionKind::learned;
  f.tied = true;
  f.activation = "relu";
  f.dropout = 0.1;
  return f;
}

constexpr FamilyFacts falcon(std::string_view model_type) {
  FamilyFacts f = gpt_like(model_type);
  f.qkv_bias = f.output_bias = f.mlp_bias = false;
  f.norms_per_layer = 1;
  f.parallel_residual = true;
  f.tied = true;
  return f;
}

constexpr FamilyFacts bloom(std::string_view model_type) {
  FamilyFacts f = gpt_like(model_type);
  f.positions = PositionKind::relative;
  f.embedding_norm = true;
  f.tied = true;
  f.activation = "gelu_python_tanh";
  return f;
}

constexpr FamilyFacts starcoder2(std::string_view model_type) {
  FamilyFacts f = gpt_like(model_type);
  f.tied = true;
  f.activation = "gelu_pytorch_tanh";
  return f;
}

constexpr FamilyFacts mpt(std::string_view model_type) {
  FamilyFacts f = gpt_like(model_type);
  f.norm_bias = false;
  f.qkv_bias = f.output_bias = f.mlp_bias = false;
  f.positions = PositionKind::relative;
  f.tied = true;
  return f;
}

constexpr FamilyFacts stablelm(std::string_view model_type) {
  FamilyFacts f{model_type};
  f.norm = NormKind::layer;
  f.norm_bias = true;
  return f;
}

constexpr FamilyFacts cohere(std::string_view model_type) {
  FamilyFacts f{model_type};
  f.norm = NormKind::layer;
  f.norms_per_layer = 1;
  f.parallel_residual = true;
  f.tied = true;
  return f;
}

constexpr FamilyFacts dbrx(std::string_view model_type) {
  FamilyFacts f{model_type};
  f.norm = NormKind::layer;
  return f;
}

constexpr FamilyFacts qwen2(std::string_view model_type) {
  FamilyFacts f{model_type};
  f.qkv_bias = true;
  f.window_switch = model_type != "qwen";
  return f;
}

constexpr FamilyFacts qwen3(std::string_view model_type) {
  FamilyFacts f{model_type};
  f.query_key_norm = QueryKeyNorm::per_head;
  f.window_switch = true;
  return f;
}

constexpr FamilyFacts olmo(std::string_view model_type) {
  FamilyFacts f{model_type};
  f.query_key_norm = QueryKeyNorm::full_width;
  return f;
}

constexpr FamilyFacts gemma(std::string_view model_type, int norms, QueryKeyNorm kind) {
  FamilyFacts f{model_type};
  f.norms_per_layer = norms;
  f.query_key_norm = kind;
  f.tied = true;
  f.activation = "gelu_pytorch_tanh";
  return f;
}

constexpr FamilyFacts bert(std::string_view model_type) {
  FamilyFacts f = gpt_like(model_type);
  f.positions = PositionKind::learned;
  f.embedding_norm = true;
  f.final_norm = false;
  f.tied = true;
  f.encoder_only = true;
  f.dropout = 0.1;
  return f;
}

constexpr FamilyFacts vit(std::string_view model_type) {
  FamilyFacts f = gpt_like(model_type);
  f.positions = PositionKind::learned;
  f.encoder_only = true;
  return f;
}

constexpr FamilyFacts t5(std::string_view model_type) {
  FamilyFacts f{model_type};
  f.mlp = MlpKind::plain;
  f.positions = PositionKind::relative;
  f.tied = true;
  f.encoder_decoder = true;
  f.activation = "relu";
  f.dropout = 0.1;
  return f;
}

constexpr FamilyFacts with(FamilyFacts facts, const ClassDefaults& defaults) {
  facts.defaults = defaults;
  return facts;
}

// Those with defaults are built by the engine: positions, kv_heads, head_dim, norm_epsilon, window, pad.
constexpr FamilyFacts kFamilies[] = {
    with({"llama"}, {2048, 0, 0, 1e-6, 0, {}}),
    with({"mistral"}, {131072, 8, 0, 1e-6, 4096, {}}),
    with({"mixtral"}, {131072, 8, 0, 1e-5, 0, {}}),
    with({"phi3"}, {4096, 0, 0, 1e-5, 0, 32000}),
    with(qwen2("qwen2"), {32768, 0, 0, 1e-6, 4096, {}}),
    with(qwen3("qwen3"), {32768, 32, 128, 1e-6, 4096, {}}),
    with(qwen3("qwen3_moe"), {32768, 4, 0, 1e-6, 4096, {}}),
    with(olmo("olmo2"), {2048, 0, 0, 1e-5, 0, 1}),
    with(gemma("gemma2", 4, QueryKeyNorm::none), {8192, 4, 256, 1e-6, 4096, 0}),
    with(gemma("gemma3_text", 4, QueryKeyNorm::per_head), {131072, 4, 256, 1e-6, 4096, 0}),
    with(gpt2("gpt2"), {1024, 0, 0, 1e-5, 0, {}}),
    with(neox("gpt_neox"), {2048, 0, 0, 1e-5, 0, {}}),
    with(starcoder2("starcoder2"), {4096, 2, 0, 1e-5, 0, {}}),
    with(bert("bert"), {512, 0, 0, 1e-12, 0, 0}),
    with(bert("roberta"), {512, 0, 0, 1e-12, 0, 1}),
    // Only for doctor.
    FamilyFacts{"granite"},
    FamilyFacts{"deepseek_v2"},
    FamilyFacts{"deepseek_v3"},
    qwen2("qwen2_moe"),
    qwen2("qwen"),
    olmo("olmo3"),
    olmo("olmoe"),
    gemma("gemma", 2, QueryKeyNorm::none),
    gemma("gemma3", 4, QueryKeyNorm::per_head),
    gpt2("gpt_bigcode"),
    gptj("gptj"),
    phi("phi"),
    phi("phi-msft"),
    opt("opt"),
    falcon("falcon"),
    bloom("bloom"),
    mpt("mpt"),
    stablelm("stablelm"),
    cohere("cohere"),
    dbrx("dbrx"),
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

std::span<const FamilyFacts> known_families() { return kFamilies; }

const FamilyFacts* find_family_facts(std::string_view model_type) {
  for (const FamilyFacts& facts : kFamilies)
    if (facts.model_type == model_type) return &facts;
  return nullptr;
}

}  // namespace headroom
