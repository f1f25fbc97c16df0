// A model as files.
#pragma once

#include <filesystem>
#include <string_view>

#include "formats/hf_config.h"
#include "models/model_spec.h"

namespace headroom {

// Its directory (empty for a bare config.json), weights, config and spec.
struct ModelFiles {
  std::filesystem::path directory;
  std::filesystem::path weights;  // what SafetensorsSet::open takes: the directory, or its .gguf
  HfConfig config;
  ModelSpec spec;
};

// Reads config.json of a directory, or a bare config.json, or a .gguf by itself or in a directory. Throws Error(usage)
// for a missing path (a Hub id gets the remedy), Error(format) for what is inside.
ModelFiles open_model(const std::filesystem::path& model);

// Refuses quantised checkpoints by name; unless they are needed as numbers, those alone whose codes are not read.
enum class QuantizedRule { codes_are_read, never };
void refuse_quantized(const ModelFiles& model, std::string_view purpose, QuantizedRule rule = QuantizedRule::never);

// Lengths of the headers that a run writes, at most: of its weights, and of its optimizer's two states for each.
int64_t own_header_bytes(const ModelSpec& spec);
// What the header of a file of a run's own checkpoint has at most: a longer one was not written by it, and its tables
// are not booked.
int64_t most_own_header_bytes(const ModelSpec& spec);

}  // namespace headroom
