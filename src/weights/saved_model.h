// Writes a model's folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "formats/json.h"
#include "runtime/executor.h"
#include "weights/model_files.h"

namespace headroom {

// Whether trained weights are stored as codes (passes/quantize_training.h).
bool trains_codes(const Executor& executor);

// Writes `directory`/model.safetensors, config.json and the model's other small files (HF layout). Weights that are
// trained as codes are stored as codes, in compressed-tensors' format.
void write_model(Executor& executor, const ModelFiles& model, const std::string& save_dtype,
                 const std::filesystem::path& directory);

// Only config.json and the other small files. `quantization`: "quantization_config" of the weights, null for plain
// numbers.
void write_model_files(const ModelFiles& model, const std::string& save_dtype, const std::filesystem::path& directory,
                       const Json& quantization = {});
// The small files without config.json, and those of a tokenizer that is inside a GGUF.
void copy_companions(const ModelFiles& model, const std::filesystem::path& directory);
// A bound on the heap that the two functions above need for such a tokenizer; 0 for other models.
int64_t companion_bytes(const ModelFiles& model);

// Writes a tokenizer that is inside a GGUF as files of `directory`, which becomes its place: models that are saved
// later get copies, which need no heap. Does nothing for other models, and beside the GGUF itself.
void keep_tokenizer(ModelFiles& model, const std::filesystem::path& directory);

}  // namespace headroom
