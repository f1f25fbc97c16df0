#include "engine/model_info.h"

#include "data/chat_template.h"
#include "engine/plan_training.h"
#include "formats/safetensors.h"
#include "tokenizer/tokenizer.h"
#include "weights/objective.h"
#include "weights/weights.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

std::map<std::string, int64_t> read_weight_bytes(const ModelFiles& model) {
  std::error_code status;
  if (model.weights == model.directory && !fs::exists(model.directory / "model.safetensors", status) &&
      !fs::exists(model.directory / "model.safetensors.index.json", status))
    return {};
  const SafetensorsSet files = SafetensorsSet::open(model.weights);
  check_weights(model.spec, files);
  return files.bytes_by_type();
}

}  // namespace

ModelInfo read_model_info(const ModelFiles& model) {
  ModelInfo info;
  if (model.directory.empty()) return info;
  info.weight_bytes = read_weight_bytes(model);
  if (const std::optional<Tokenizer> tokenizer = tokenizer_of(model))
    info.tokenizer = {tokenizer->vocab_size(), tokenizer->bos_id(), tokenizer->eos_id()};
  info.chat_template = has_chat_template(model.tokenizer);
  return info;
}

ServingNeeds serving_needs(const ModelSpec& spec) {
  const bool writes = spec.objective == Objective::language;
  const int64_t bytes = dtype_bytes(DType::f32);
  return {parameter_count(spec) * bytes, writes ? 2 * spec.layers * spec.kv_heads * spec.head_dim * bytes : 0};
}

int64_t least_budget_in(const ModelFiles& model, const std::string& precision) {
  TrainOptions options;
  options.model.path = model.config.source;
  options.techniques.precision = precision;
  return least_training_budget(options, model);
}

}  // namespace headroom
