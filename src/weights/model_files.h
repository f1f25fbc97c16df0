// The files of a model.
#pragma once

#include <filesystem>
#include <string_view>

#include "formats/hf_config.h"
#include "models/model_spec.h"

namespace headroom {

// Its directory (empty for a bare config.json), weights, place of the tokenizer, config and spec.
struct ModelFiles {
  std::filesystem::path directory;
  std::filesystem::path weights;    // the argument of SafetensorsSet::open: the directory, or its .gguf
  std::filesystem::path tokenizer;  // as tokenizer_place() finds it: the directory, or its .gguf
  HfConfig config;
  ModelSpec spec;
};

// Reads config.json of a directory, or a bare config.json, or a .gguf (the file or its directory). Throws Error(usage)
// for a missing path (a Hub id gets the remedy), Error(format) for malformed contents.
ModelFiles open_model(const std::filesystem::path& model);

// Refuses quantised checkpoints by name; only those whose codes cannot be read, unless plain numbers are needed.
enum class QuantizedRule { codes_are_read, never };
void refuse_quantized(const ModelFiles& model, std::string_view purpose, QuantizedRule rule = QuantizedRule::never);

// Upper bounds of the header lengths that a run writes: of its weights, and of its optimizer's two states for each.
int64_t own_header_bytes(const ModelSpec& spec);
// Upper bound for the header of a file in a run's own checkpoint: a longer one was not written by the run, and its
// tables are not booked.
int64_t most_own_header_bytes(const ModelSpec& spec);

}  // namespace headroom
