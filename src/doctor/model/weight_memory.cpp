#include "doctor/model/weight_memory.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace headroom::doctor {
namespace {

enum class Input { attention, attention_output, mlp, mlp_inner };

struct Target {
  double in = 0, out = 0;
  Input input = Input::attention;
};

bool named(const std::string& name, std::initializer_list<const char*> names) {
  const size_t dot = name.find_last_of('.');
  const std::string last = dot == std::string::npos ? name : name.substr(dot + 1);
  return std::any_of(names.begin(), names.end(), [&](const char* n) { return last == n; });
}

// The matrix that a target's name means in one layer; in == 0 when the layer has no such matrix.
Target target_of(const std::string& name, const ModelShape& shape) {
  const double hidden = static_cast<double>(shape.hidden), dim = static_cast<double>(shape.head_dim);
  const double queries = static_cast<double>(shape.heads) * dim, keys = static_cast<double>(shape.kv_heads) * dim;
  const double inner = static_cast<double>(shape.intermediate);
  if (named(name, {"q_proj", "query", "q", "wq", "to_q"})) return {hidden, queries, Input::attention};
  if (named(name, {"k_proj", "key", "k", "wk", "v_proj", "value", "v", "wv"})) return {hidden, keys, Input::attention};
  if (named(name, {"qkv_proj", "query_key_value", "c_attn", "Wqkv", "qkv", "attn"}))
    return {hidden, queries + 2 * keys, Input::attention};
  if (named(name, {"o_proj", "out_proj", "output_proj", "o", "wo", "dense", "proj"}))
    return {queries, hidden, Input::attention_output};
  if (named(name, {"gate_up_proj"})) return {hidden, 2 * inner, Input::mlp};
  if (named(name, {"gate_proj", "up_proj", "w1", "w3", "fc1", "fc_1", "c_fc", "dense_h_to_4h", "wi", "fc_in"}))
    return {hidden, inner, Input::mlp};
  if (named(name, {"down_proj", "w2", "fc2", "fc_2", "c_proj", "dense_4h_to_h", "fc_out"}))
    return {inner, hidden, Input::mlp_inner};
  return {};
}

std::vector<std::string> expand(const std::vector<std::string>& given, const ModelShape& shape, Library library) {
  std::vector<std::string> targets = given;
  if (targets.empty()) targets = {"q_proj", "v_proj"};
  std::vector<std::string> all;
  for (const std::string& name : targets) {
    if (name == "all-linear" || name == "all" || name == "linear") {
      all.insert(all.end(), {"q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj"});
      if (shape.gated_mlp) all.push_back("gate_proj");
    } else if (name == "mlp" || (name == "fc" && library == Library::litgpt)) {
      all.insert(all.end(), {"up_proj", "down_proj"});
      if (shape.gated_mlp) all.push_back("gate_proj");
    } else {
      all.push_back(name);
    }
  }
  return all;
}

}  // namespace

namespace {

// llama.cpp's types: bits per weight averaged over a file, as printed by its quantize program.
struct GgufType {
  std::string_view name;
  double bits;
};
constexpr GgufType kGgufTypes[] = {{"q4_0", 4.55},    {"q4_1", 5.0},    {"q5_0", 5.5},     {"q5_1", 6.0},
                                   {"q8_0", 8.5},     {"q2_k", 3.0},    {"q3_k_s", 3.5},   {"q3_k_m", 3.91},
                                   {"q3_k_l", 4.27},  {"q4_k_s", 4.58}, {"q4_k_m", 4.85},  {"q5_k_s", 5.54},
                                   {"q5_k_m", 5.69},  {"q6_k", 6.59},   {"iq2_xxs", 2.06}, {"iq2_xs", 2.31},
                                   {"iq3_xxs", 3.06}, {"iq3_s", 3.44},  {"iq4_xs", 4.25},  {"iq4_nl", 4.5}};

}  // namespace

double quantized_width(const std::string& method) {
  for (const GgufType& type : kGgufTypes)
    if (method == type.name) return type.bits / 8;
  if (method == "nf4-dq" || method == "fp4-dq") return 0.5 + 1.0 / 64 + 4.0 / 16384;
  if (method == "nf4" || method == "fp4") return 0.5 + 4.0 / 64;
  if (method == "gptq" || method == "awq" || method == "int4") return 0.5 + 2.5 / 128;
  if (method == "int8" || method == "fp8" || method == "int8-training") return 1;
  return 2;
}

LitGptTables litgpt_tables(const ModelShape& shape, const TrainSettings& s) {
  LitGptTables tables;
  if (s.library != Library::litgpt || shape.vocab == 0) return tables;
  const double table = static_cast<double>(shape.vocab) * static_cast<double>(shape.hidden);
  tables.head = table;
  tables.untied = shape.tied ? table : 0;
  tables.stale = s.lora && !s.quantization.empty() ? table : 0;
  return tables;
}

Bytes base_weights(const ModelShape& shape, const TrainSettings& s) {
  const double share = s.tensor * s.pipeline;
  const LitGptTables tables = litgpt_tables(shape, s);
  const double parameters = shape.parameters + tables.untied;
  if (s.quantization.empty())
    return {parameters * s.weight_width / share, fmt::format("{:.0f} weights x {} B{}", parameters, s.weight_width,
                                                             share > 1 ? fmt::format(" / {}", share) : "")};
  const double width = quantized_width(s.quantization);
  const double rest_width = s.prepared_kbit ? 4 : s.compute_width;
  const double quantized = shape.linear_parameters + tables.head;
  const double rest = parameters + tables.stale - quantized;
  return {(quantized * width + rest * rest_width) / share,
          fmt::format("{:.0f} in {} x {:.4f} B + {:.0f} others x {} B", quantized, s.quantization, width, rest,
                      rest_width)};
}

Adapters lora_adapters(const ModelShape& shape, const TrainSettings& s) {
  Adapters a;
  if (!s.lora) return a;
  const double rank = static_cast<double>(std::max<int64_t>(1, s.lora_settings.rank));
  std::array<bool, 4> seen{};
  double per_layer = 0;
  for (const std::string& name : expand(s.lora_settings.targets, shape, s.library)) {
    const Target target = target_of(name, shape);
    if (target.in == 0) continue;
    per_layer += rank * (target.in + target.out);
    a.input_width += target.in;
    const size_t kind = static_cast<size_t>(target.input);
    // The kernel of attention keeps the attention's output anyway.
    if (!seen[kind] && target.input != Input::attention_output) a.shared_input_width += target.in;
    if (!seen[kind]) a.distinct_input_width += target.in;
    seen[kind] = true;
    a.targets += 1;
  }
  a.parameters = per_layer * static_cast<double>(shape.layers + shape.encoder_layers);
  for (const std::string& name : s.lora_settings.modules_to_save)
    if (named(name, {"lm_head", "embed_tokens", "wte", "embed_out"}))
      a.parameters += static_cast<double>(shape.vocab) * static_cast<double>(shape.hidden);
  return a;
}

double trainable_parameters(const ModelShape& shape, const TrainSettings& s) {
  return (s.lora ? lora_adapters(shape, s).parameters : shape.parameters) / (s.tensor * s.pipeline);
}

}  // namespace headroom::doctor
