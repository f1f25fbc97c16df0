// What a model is trained to predict, as data and batches need to know it.
#pragma once

#include <cstdint>
#include <span>

#include "data/row_targets.h"
#include "data/token_cache_builder.h"
#include "train/setup.h"

namespace headroom {

// Whether the labels of evaluation are hit or missed one by one: masked tokens and classes, not next tokens.
bool has_accuracy(const ModelSpec& spec);

// Throws Error(usage) for models without a head, by name.
void refuse_without_head(const ModelFiles& model, std::string_view purpose);

// With adapters, what has no trained weights is trained whole beside them, as in PEFT: a classifier, and `missing`
// weights of the head. Adds these to the modules to save; without adapters nothing.
void train_head_with_adapters(const ModelSpec& spec, std::span<const WeightInfo> missing, LoraOptions& lora);

// Sets what the rows of `data` are: the kind of labels, and the classes with the names of config.json's label2id and
// id2label. Throws Error(format) when these contradict the number of classes.
void set_objective(const ModelFiles& model, DataOptions& data);

// How rows become targets: where a class stands, the padding id, and, of masked models with a tokenizer, the masking
// with `probability`, drawn from `seed`. Loads the tokenizer where masking needs it, and frees it. Throws Error.
RowTargets row_targets(const ModelFiles& model, double probability, uint64_t seed);

// The seed of evaluation: each row is masked always alike.
inline constexpr uint64_t kEvaluationSeed = 0;

}  // namespace headroom
