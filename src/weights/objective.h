// What a model is trained to predict, for data and batches.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "data/row_targets.h"
#include "data/token_cache_builder.h"
#include "passes/lora.h"
#include "plan/plan.h"
#include "planner/request.h"
#include "weights/model_files.h"

namespace headroom {

// Whether evaluation counts hits: for masked tokens and classes, not for next tokens.
bool has_accuracy(const ModelSpec& spec);

// How to give a model without a head one, in words.
std::string_view head_remedy();
// Throws Error(usage) for models without a head, by name.
void refuse_without_head(const ModelFiles& model, std::string_view purpose);

// With adapters, parts without trained weights are trained in full, as in PEFT: a classifier, and `missing` weights of
// the head. Adds these to the modules to save; without adapters does nothing. Throws Error(usage) for modules to save
// that PEFT's files cannot hold (weights/tied_head.h).
void train_head_with_adapters(const ModelSpec& spec, std::span<const WeightInfo> missing, LoraOptions& lora);

// How files of rows and text are read for a model in sequences of `seq_length` tokens, conversations with `chat_bytes`
// of heap: the kind of labels, and the classes with the names of config.json's label2id and id2label. Throws
// Error(format) if these contradict the number of classes.
DataOptions data_for(const ModelFiles& model, std::vector<std::filesystem::path> files, int64_t seq_length,
                     int64_t chat_bytes = ChatRenderer::kMostBytes);

// The heap for rendering conversations in a run of this plan.
int64_t chat_bytes_of(const Plan& plan);

// The model's tokenizer; nothing if it has none, or a GGUF one that is not read. Throws Error(format).
std::optional<Tokenizer> tokenizer_of(const ModelFiles& model);

// How rows become targets: the position of a class, the padding id, and, for masked models with a tokenizer, masking
// with `probability`, at random from `seed`. Loads the tokenizer if masking needs it, and frees it. Throws Error.
RowTargets row_targets(const ModelFiles& model, double probability, uint64_t seed);

// The seed of evaluation, so that each row is always masked in the same way.
inline constexpr uint64_t kEvaluationSeed = 0;

}  // namespace headroom
