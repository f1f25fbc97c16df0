// Weights that a checkpoint stores as codes in blocks: the 4 bits of bitsandbytes, the packed integers of
// compressed-tensors, and Q8_0 and Q4_0 of a GGUF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/json.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"
#include "models/model_spec.h"
#include "plan/plan.h"
#include "runtime/executor.h"

namespace headroom {

// The tensors that store the weight NAME.weight. bitsandbytes: "" (codes), ".absmax", ".quant_map", ".quant_state.*",
// and with double quantisation ".nested_absmax" and ".nested_quant_map"; compressed-tensors: "_packed", "_scale",
// "_shape"; GGUF: "", which has both codes and scales.
struct StoredCodes {
  Storage storage;
  std::string codes, scales, outer_scales;
  float offset = 0;                  // of scales that are codes
  bool little_nibbles = false;       // compressed-tensors: the first element is the lowest bits of a word
  bool in_blocks = false;            // GGUF: each block's codes are stored with its scale
  std::vector<std::string> tensors;  // all that belong to it
};

// The codes of a weight, checked; nothing if it is stored as plain numbers or missing. Throws Error(format) naming
// tensor and value for parts that are missing, of another size, or of another table of codes than the format's.
std::optional<StoredCodes> find_stored_codes(const ModelSpec& spec, const SafetensorsSet& files,
                                             const WeightInfo& weight);

// Copies them into a weight of the arena with the same storage. Throws Error(format) for another storage.
void load_stored_codes(Executor& executor, const PersistentTensor& weight, const SafetensorsSet& files,
                       const StoredCodes& stored);

// Elements first .. first + into.size() of the weight, decoded. Throws Error as SafetensorsSet::read.
void read_decoded(const SafetensorsSet& files, const StoredCodes& stored, int64_t first, std::span<float> into);

// Writes a weight of the arena, 8-bit codes with a scale per row, as compressed-tensors stores it. Wider types come
// first: declare every weight's shape, then the others.
void declare_packed_shape(SafetensorsWriter& writer, const PersistentTensor& weight);
void declare_packed(SafetensorsWriter& writer, const PersistentTensor& weight);
void write_packed_shape(SafetensorsWriter& writer, const PersistentTensor& weight);
void write_packed(SafetensorsWriter& writer, const PersistentTensor& weight, const Executor& executor,
                  std::span<std::byte> staging);

// "quantization_config" of such weights in groups of `group` elements of a row, 0: of the whole row; with
// `token_activations` the inputs of their layers are rounded to 8 bits per token while the model runs.
Json packed_config(int bits, int64_t group, bool token_activations);

// Converts compressed-tensors' bits to those of base/block_codes.h, and back.
void turn_packed(int bits, std::span<std::byte> codes);

}  // namespace headroom
