#include "weights/objective.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "data/mask_tokens.h"
#include "passes/freeze.h"
#include "passes/lora.h"
#include "planner/request.h"
#include "tokenizer/tokenizer_place.h"
#include "weights/tied_head.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

using Names = std::map<std::string, int32_t, std::less<>>;

[[noreturn]] void refuse_names(const HfConfig& config, const char* key, const std::string& problem) {
  config.refuse(key, problem, "correct config.json: classes are numbered from 0 on");
}

void add_name(const ModelFiles& model, const char* key, Names& names, const std::string& name, int64_t index) {
  if (index < 0 || index >= model.spec.classes)
    refuse_names(model.config, key, fmt::format("of which '{}' is class {} of {}", name, index, model.spec.classes));
  const auto [at, added] = names.emplace(name, static_cast<int32_t>(index));
  if (!added && at->second != index)
    refuse_names(model.config, key, fmt::format("where '{}' is two classes, {} and {}", name, at->second, index));
}

// label2id: {"good": 1}.
void add_ids(const ModelFiles& model, Names& names) {
  constexpr const char* kKey = "label2id";
  if (!model.config.has(kKey) || !model.config.raw[kKey].is_object()) return;
  for (const auto& [name, value] : model.config.raw[kKey].items()) {
    if (!value.is_number_integer()) refuse_names(model.config, kKey, fmt::format("of which '{}' has no number", name));
    add_name(model, kKey, names, name, value.get<int64_t>());
  }
}

// id2label: {"1": "good"}.
void add_labels(const ModelFiles& model, Names& names) {
  constexpr const char* kKey = "id2label";
  if (!model.config.has(kKey) || !model.config.raw[kKey].is_object()) return;
  for (const auto& [index, name] : model.config.raw[kKey].items()) {
    const bool number =
        !index.empty() && index.size() < 9 && index.find_first_not_of("0123456789") == std::string::npos;
    if (!number || !name.is_string()) refuse_names(model.config, kKey, fmt::format("with the class '{}'", index));
    add_name(model, kKey, names, name.get<std::string>(), std::stoll(index));
  }
}

void set_labels(const ModelFiles& model, DataOptions& data) {
  switch (model.spec.objective) {
    case Objective::masked:
      data.labels = LabelKind::own_position;
      return;
    case Objective::classification: {
      Names names;
      add_ids(model, names);
      add_labels(model, names);
      data.labels = LabelKind::sequence_class;
      data.token_types = model.spec.type_vocab;
      data.classes = ClassNames(model.spec.classes, std::move(names));
      return;
    }
    case Objective::language:
    case Objective::none:
      data.labels = LabelKind::next_token;
  }
}

}  // namespace

bool has_accuracy(const ModelSpec& spec) { return spec.objective != Objective::language; }

std::string_view head_remedy() {
  return "name a class with a head in config.json's architectures: ...ForSequenceClassification (with num_labels or "
         "id2label) or ...ForMaskedLM; `train` initialises the head at random";
}

void refuse_without_head(const ModelFiles& model, std::string_view purpose) {
  if (model.spec.objective != Objective::none) return;
  throw Error(ErrorKind::usage,
              fmt::format("{}: a {} has no head, so there is nothing to {}", model.config.source.string(),
                          model.spec.architecture, purpose),
              std::string(head_remedy()));
}

void train_head_with_adapters(const ModelSpec& spec, std::span<const WeightInfo> missing, LoraOptions& lora) {
  if (lora.rank == 0) return;
  refuse_tied_head_with_bias(spec, lora);
  std::vector<std::string> modules;
  const auto first_part = [](const std::string& name) { return name.substr(0, name.find('.')); };
  if (spec.objective == Objective::classification) modules.push_back(first_part(spec.name("head")));
  for (const WeightInfo& weight : missing) modules.push_back(weight.name.substr(0, weight.name.rfind('.')));
  for (const std::string& module : modules) {
    const auto covers = [&](const std::string& pattern) { return pattern_means(pattern, module); };
    if (std::none_of(lora.modules_to_save.begin(), lora.modules_to_save.end(), covers))
      lora.modules_to_save.push_back(module);
  }
}

DataOptions data_for(const ModelFiles& model, std::vector<fs::path> files, int64_t seq_length, int64_t chat_bytes) {
  DataOptions data;
  data.files = std::move(files);
  data.max_seq_length = seq_length;
  data.chat_bytes = chat_bytes;
  data.vocab_size = model.spec.vocab;
  data.tokenizer_folder = model.tokenizer;
  set_labels(model, data);
  return data;
}

int64_t chat_bytes_of(const Plan& plan) { return ChatRenderer::kLeastBytes + plan.prepare.most - plan.prepare.least; }

std::optional<Tokenizer> tokenizer_of(const ModelFiles& model) {
  std::error_code status;
  if (!is_gguf_tokenizer(model.tokenizer) && !fs::exists(model.tokenizer / "tokenizer.json", status))
    return std::nullopt;
  if (is_unread_tokenizer(model.tokenizer)) return std::nullopt;
  return Tokenizer::load(model.tokenizer);
}

RowTargets row_targets(const ModelFiles& model, double probability, uint64_t seed) {
  Masking masking;
  masking.probability = probability;
  masking.seed = seed;
  masking.vocab_size = model.spec.vocab;
  const std::optional<Tokenizer> tokenizer =
      model.spec.objective == Objective::masked ? tokenizer_of(model) : std::nullopt;
  if (tokenizer) {
    masking.mask_id = find_mask_token(*tokenizer, model.directory).value_or(-1);
    if (masking.mask_id >= model.spec.vocab)
      throw Error(
          ErrorKind::format,
          fmt::format("the mask token has id {}, the model's vocab_size is {}", masking.mask_id, model.spec.vocab),
          "the tokenizer and the model do not belong together");
    masking.unmasked = special_token_ids(*tokenizer);
  }
  const bool classes = model.spec.objective == Objective::classification;
  const RowLimits limits{model.spec.vocab, classes ? model.spec.classes : model.spec.vocab};
  return {static_cast<int32_t>(model.spec.pad_id), model.spec.causal, std::move(masking), limits};
}

}  // namespace headroom
