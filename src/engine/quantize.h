// Writes a quantized checkpoint: the layers' matrices as codes, in files that transformers loads, or all of its
// matrices in a GGUF, which llama.cpp loads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/work_progress.h"

namespace headroom {

struct QuantizeOptions {
  std::filesystem::path model;       // a model's directory
  std::filesystem::path output_dir;  // fresh
  // nf4, nf4-dq, fp4 (bitsandbytes), int8, int4 (compressed-tensors); qat-int8-int4, qat-int4, qat-int8: the same files
  // with the codes that --technique qat=KIND trained for; f16, bf16, q8_0, q4_0: a GGUF.
  std::string weights = "nf4";
  int64_t group_size = 0;  // of int8 and int4: elements that share a scale; 0: a row, and 32
  int64_t memory = 0;      // bytes that the process may use; 0: no limit
};

// Writes the model with the matrices as in `quantize-weights` of that kind (passes/quantize_weights.h), or as qat
// rounds them (passes/qat.h), others as they are stored. Tensor by tensor in pieces of 1 MiB: besides the scales of one
// matrix nothing is held, whatever the model's size. Returns what the output lacks (gguf_export.h), else "". Throws
// Error(usage) for paths, kinds and models that are quantised already, Error(format) for files that do not belong
// together, Error(does_not_fit) if options.memory is too small, Error(run) on I/O errors; a partial output is removed.
// `progress`: in tensors that are written.
std::string quantize_model(const QuantizeOptions& options, const WorkProgress& progress = {});

}  // namespace headroom
