#include "doctor/model/optimizer_memory.h"

#include <algorithm>

#include "base/error.h"

namespace headroom::doctor {
namespace {

// Elements of Adafactor's factored second moment (rows and columns), float32.
double factored_elements(const ModelShape& shape, const TrainSettings& s) {
  const double hidden = static_cast<double>(shape.hidden), dim = static_cast<double>(shape.head_dim);
  const double queries = static_cast<double>(shape.heads) * dim, keys = static_cast<double>(shape.kv_heads) * dim;
  const double inner = static_cast<double>(shape.intermediate), layers = static_cast<double>(shape.layers);
  if (s.lora) return lora_adapters(shape, s).parameters * 0.1;  // thin matrices: a tenth or less
  const double attention = 2 * (hidden + queries) + 2 * (hidden + keys);
  const double mlp = (shape.gated_mlp ? 3 : 2) * (hidden + inner);
  return layers * (attention + mlp) + static_cast<double>(shape.vocab) + hidden;
}

// Elements of the largest weight.
double largest_weight(const ModelShape& shape, const TrainSettings& s) {
  const double hidden = static_cast<double>(shape.hidden);
  if (s.lora) return hidden * static_cast<double>(s.lora_settings.rank);
  return hidden * static_cast<double>(std::max(shape.vocab, shape.intermediate));
}

struct Rule {
  double states = 0;  // bytes per element
  double copies = 0;  // of state_width over all elements during the step (multi-tensor implementation)
  bool known = true;
  std::string text;
};

Rule plain_rule(const std::string& name, const TrainSettings& s) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  const double w = s.state_width;
  if (has("lomo")) return {0, 0, true, "no states"};
  if (has("ademamix")) return {3 * w, 1, true, fmt::format("3 x {} B", w)};
  if (has("lion")) return {w, 0, true, fmt::format("{} B (momentum)", w)};
  if (has("muon")) return {1.15 * w, 0, true, fmt::format("{} B (momentum; AdamW for tables)", w)};
  if (has("galore") || has("apollo")) return {0.5 * w, 0, true, "moments of projected gradients, about a quarter"};
  if (has("momentum") || has("adagrad") || has("rmsprop"))
    return {w, has("sgd") ? 0.0 : 1.0, true, fmt::format("{} B", w)};
  if (has("sgd")) return {0, 0, true, "no states"};
  const bool adam = has("adam") || has("lamb") || has("sophia") || has("stable");
  return {2 * w, 1, adam, fmt::format("2 x {} B (first and second moment)", w)};
}

}  // namespace

OptimizerBytes optimizer_bytes(const ModelShape& shape, const TrainSettings& s, double parameters) {
  OptimizerBytes out;
  const std::string& name = s.optimizer;
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  out.paged = has("paged");
  const double largest = largest_weight(shape, s);
  if (has("adafactor")) {
    const double elements = factored_elements(shape, s);
    out.states = {4 * elements, fmt::format("{:.0f} rows and columns x 4 B", elements)};
    out.step = {3 * 4 * largest, fmt::format("3 float32 copies of the largest weight ({:.0f})", largest)};
    return out;
  }
  if (has("8bit") || has("4bit") || has("fp8")) {
    const double bits = has("4bit") ? 4 : 8, block = has("4bit") ? 128 : 256, moments = has("lion") ? 1 : 2;
    const double width = moments * (bits / 8 + 4 / block);
    // transformers registers embeddings for 32-bit states when it creates a bitsandbytes optimizer.
    const bool override_tables = s.library == Library::transformers && !s.lora && s.system != System::pytorch_script &&
                                 s.system != System::unknown;
    const double tables = override_tables ? static_cast<double>(shape.vocab) * static_cast<double>(shape.hidden) : 0;
    const double quantized = std::max(0.0, parameters - tables);
    out.states = {quantized * width + tables * 4 * moments,
                  fmt::format("{:.0f} x {:.3f} B + {:.0f} of tables x {} B", quantized, width, tables, 4 * moments)};
    return out;
  }
  const Rule rule = plain_rule(name, s);
  out.known = rule.known;
  out.states = {parameters * rule.states, fmt::format("{:.0f} x {}", parameters, rule.text)};
  if (s.optimizer_in_backward || has("fused")) return out;
  if (s.foreach_optimizer)
    out.step = {rule.copies * parameters * s.state_width,
                fmt::format("multi-tensor step: {} copy of {:.0f} x {} B", rule.copies, parameters, s.state_width)};
  else if (rule.copies > 0 && s.library == Library::transformers)
    out.step = {2 * largest * s.state_width, fmt::format("2 copies of the largest weight ({:.0f})", largest)};
  return out;
}

}  // namespace headroom::doctor
