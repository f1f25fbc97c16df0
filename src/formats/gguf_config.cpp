#include "formats/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/integer_codes.h"
#include "formats/gguf_names.h"

namespace headroom {
namespace {

constexpr int64_t kMostFactors = 4096;
constexpr std::string_view kFactors = "rope_freqs.weight";

class Translation {
 public:
  explicit Translation(const GgufFile& file) : file_(file), header_(file.header()) {
    const Json* const name = find("general.architecture");
    const std::string text = name && name->is_string() ? name->get<std::string>() : std::string();
    const GgufArchitecture* const known = find_gguf_architecture(text);
    if (!known) {
      std::string list;
      for (const GgufArchitecture& each : gguf_architectures())
        if (&each == find_gguf_architecture(each.name))
          list += fmt::format("{}{}", list.empty() ? "" : ", ", each.name);
      refuse("general.architecture", fmt::format("is '{}', not one of {}", text.substr(0, 40), list),
             "convert the model to safetensors");
    }
    architecture_ = *known;
  }

  Json config() {
    out_ = {{"model_type", architecture_.model_type}, {"architectures", Json::array({architecture_.architecture})}};
    if (const Json* const experts = of("expert_count"); experts && *experts != 0)
      refuse(key("expert_count"), fmt::format("is {}: experts of a GGUF are not read", experts->dump()),
             "convert the model to safetensors");
    copy("embedding_length", "hidden_size");
    copy("block_count", "num_hidden_layers");
    copy("feed_forward_length", "intermediate_size");
    copy("attention.head_count", "num_attention_heads");
    copy("attention.head_count_kv", "num_key_value_heads", *of("attention.head_count"));
    copy("context_length", "max_position_embeddings");
    copy("attention.layer_norm_rms_epsilon", "rms_norm_eps");
    copy("rope.freq_base", "rope_theta", Json(10000.0));
    out_["hidden_act"] = "silu";
    add_heads();
    add_rotary_scaling();
    add_vocabulary();
    add_variants();
    add_types();
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view key, const std::string& what, const std::string& remedy) const {
    throw Error(ErrorKind::format, fmt::format("{}: {} {}", file_.path().string(), key, what), remedy);
  }

  const Json* find(std::string_view name) const {
    const auto at = header_.values.find(name);
    return at == header_.values.end() ? nullptr : &at->second;
  }
  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_.name, name); }
  const Json* of(std::string_view name) const { return find(key(name)); }

  void copy(std::string_view from, const char* to, std::optional<Json> fallback = {}) {
    const Json* const value = of(from);
    if (value && !value->is_number()) refuse(key(from), "is not a number", "download the file again");
    if (!value && header_.arrays.contains(key(from)))
      refuse(key(from), "differs by layer", "convert the model to safetensors");
    if (!value && !fallback) refuse(key(from), "is missing", "download the file again");
    out_[to] = value ? *value : *fallback;
  }

  void add_heads() {
    const Json* const width = of("attention.key_length");
    const Json* const value_width = of("attention.value_length");
    if (width) out_["head_dim"] = *width;
    if (value_width && (!width || *value_width != *width))
      refuse(key("attention.value_length"), "is not attention.key_length", "convert the model to safetensors");
    const Json &hidden = out_["hidden_size"], &heads = out_["num_attention_heads"];
    const int64_t count = heads.is_number_integer() ? heads.get<int64_t>() : 0;
    const Json head = width                                     ? *width
                      : count > 0 && hidden.is_number_integer() ? Json(hidden.get<int64_t>() / count)
                                                                : Json();
    if (const Json* const rotated = of("rope.dimension_count"); rotated && *rotated != head)
      refuse(key("rope.dimension_count"), fmt::format("is {}, not the {} of a head", rotated->dump(), head.dump()),
             "convert the model to safetensors");
  }

  // The factors of Llama 3 are a tensor with one for every pair of channels, as in LongRoPE.
  void add_rotary_scaling() {
    if (const GgufTensor* const tensor = header_.find(kFactors)) {
      if (tensor->shape.size() != 1 || tensor->shape[0] > kMostFactors)
        refuse(kFactors, fmt::format("has {} elements", tensor->elements()), "download the file again");
      std::vector<double> factors;
      file_.each_block(*tensor, 0, tensor->elements(), [&](const std::byte* block, int64_t) {
        float values[kMostBlockElements];
        decode_block(tensor->type, block, values);
        factors.insert(factors.end(), values, values + ggml_block(tensor->type).elements);
      });
      out_["rope_scaling"] = {{"rope_type", "longrope"},
                              {"short_factor", factors},
                              {"long_factor", factors},
                              {"attention_factor", 1.0},
                              {"original_max_position_embeddings", out_["max_position_embeddings"]}};
      return;
    }
    const Json* const kind = of("rope.scaling.type");
    if (!kind || *kind == "none") return;
    Json scaling{{"rope_type", *kind}};
    if (const Json* const factor = of("rope.scaling.factor")) scaling["factor"] = *factor;
    out_["rope_scaling"] = std::move(scaling);
  }

  void add_vocabulary() {
    const GgufTensor* const embedding = header_.find("token_embd.weight");
    if (const Json* const size = of("vocab_size"))
      out_["vocab_size"] = *size;
    else if (embedding)
      out_["vocab_size"] = embedding->shape.front();
    else
      refuse("token_embd.weight", "is missing", "download the file again");
    out_["tie_word_embeddings"] = header_.find("output.weight") == nullptr;
    for (const auto& [from, to] : {std::pair{"tokenizer.ggml.bos_token_id", "bos_token_id"},
                                   std::pair{"tokenizer.ggml.eos_token_id", "eos_token_id"}})
      if (const Json* const id = find(from)) out_[to] = *id;
  }

  void add_variants() {
    if (architecture_.model_type != "llama") return;
    out_["attention_bias"] = header_.find("blk.0.attn_q.bias") != nullptr;
    out_["mlp_bias"] = header_.find("blk.0.ffn_up.bias") != nullptr;
  }

  // The dtype of plain numbers, or the code type of all the layers' matrices.
  void add_types() {
    out_["torch_dtype"] = "float32";
    std::optional<GgmlType> type;
    bool one = true;
    for (const GgufTensor& tensor : header_.tensors) {
      if (!tensor.name.starts_with("blk.") || tensor.shape.size() < 2) continue;
      one = one && (!type || *type == tensor.type);
      type = tensor.type;
    }
    if (!type || !one) return;
    if (*type == GgmlType::f16) out_["torch_dtype"] = "float16";
    if (*type == GgmlType::bf16) out_["torch_dtype"] = "bfloat16";
    const std::string codes = codes_of(*type);
    if (codes.empty()) return;
    const GgufTensor* const embedding = header_.find("token_embd.weight");
    const GgufTensor* const head = header_.find("output.weight");
    const auto of_matrix = [](const GgufTensor* tensor) { return tensor ? codes_of(tensor->type) : std::string(); };
    out_["quantization_config"] = {{"quant_method", "gguf"},
                                   {"weights", codes},
                                   {"embedding", of_matrix(embedding)},
                                   {"head", of_matrix(head ? head : embedding)}};
  }

  // "int8-g32" for Q8_0; empty for types that are decoded.
  static std::string codes_of(GgmlType type) {
    const std::optional<int> bits = ggml_code_bits(type);
    return bits ? integer_codes_name({*bits, ggml_block(type).elements}) : std::string();
  }

  const GgufFile& file_;
  const GgufHeader& header_;
  GgufArchitecture architecture_;
  Json out_;
};

}  // namespace

Json gguf_config(const GgufFile& file) { return Translation(file).config(); }

int64_t gguf_heads(const GgufHeader& header, bool keys) {
  const auto architecture = header.values.find("general.architecture");
  if (architecture == header.values.end() || !architecture->second.is_string()) return 0;
  const auto prefix = architecture->second.get<std::string>() + ".attention.head_count";
  for (const std::string& name : {keys ? prefix + "_kv" : prefix, prefix})
    if (const auto at = header.values.find(name); at != header.values.end())
      return at->second.is_number_integer() ? at->second.get<int64_t>() : 0;
  return 0;
}

}  // namespace headroom
