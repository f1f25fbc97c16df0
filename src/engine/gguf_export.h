// Writes a model as one GGUF, for llama.cpp and programs built on it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "engine/work_progress.h"
#include "formats/ggml_blocks.h"
#include "weights/model_files.h"

namespace headroom {

// The type of a GGUF's matrices: "f16", "bf16", "q8_0" or "q4_0"; nothing for another word.
std::optional<GgmlType> gguf_type_named(std::string_view name);

// Writes the model with all matrices of that type (F16 if rows are not whole blocks of it), vectors as F32, q and k in
// llama.cpp's order of rows, and the tokenizer of the path's folder. In pieces of 1 MiB. Returns what the file lacks,
// else "". Throws Error(usage) for a family without such a layout, Error(format) as SafetensorsSet::open, Error(run) on
// I/O errors. `progress`: in tensors that are written.
std::string write_gguf(const ModelFiles& model, GgmlType type, const std::filesystem::path& path,
                       const WorkProgress& progress = {});
// A bound on the process's memory for it.
int64_t gguf_export_bytes(const ModelFiles& model);

}  // namespace headroom
