// Weights between files and the arena, converted in place in bounded chunks: no second copy of any tensor.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"
#include "models/model_spec.h"
#include "plan/plan.h"
#include "runtime/executor.h"

namespace headroom {

// Whether a checkpoint must hold the model's head (WeightInfo::head), or may be one of the bare model.
enum class HeadRule { required, may_miss };

// Checks that a checkpoint holds exactly the model's weights: names (missing, extra), shapes, dtypes F32, F16 or BF16.
// Throws Error(format) naming tensor, value and remedy. Reads headers only.
void check_weights(const ModelSpec& spec, const SafetensorsSet& files, HeadRule head = HeadRule::required);

// A tensor's values from element `first` on, into.size() of them, as fp32; stored F32, F16 or BF16.
void read_floats(const SafetensorsFile& file, const StoredTensor& tensor, int64_t first, std::span<float> into);
void read_floats(const SafetensorsSet& files, const std::string& stored_name, int64_t first, std::span<float> into);
std::vector<float> read_floats(const SafetensorsFile& file, const StoredTensor& tensor);
// Reads the whole tensor into the arena, f32, bf16 or f16, without staging.
void read_tensor(Executor& executor, const SafetensorsFile& file, const StoredTensor& tensor, const TensorView& into);
// The type in which a file stores the arena's tensor unchanged: f32, bf16, f16, or u8.
StoredType stored_as(DType dtype);
// The checkpoint's spelling of a weight's name: as it is, or without an optional prefix, or with the old names of
// LayerNorm's weight and bias, gamma and beta; empty when it is missing.
std::string stored_weight_name(const ModelSpec& spec, const SafetensorsSet& files, const std::string& name);

// Reads every parameter of the plan except adapters into the arena in the plan's dtype (f32, bf16 or f16): directly if
// the file has the same type, else chunk by chunk through the staging of program "load". Weights that the files lack
// (check_weights says which may be missing) are left alone. Throws Error as SafetensorsFile::read.
void read_weights(Executor& executor, const ModelSpec& spec, const SafetensorsSet& files);
// The same, then runs "load" (tables, narrow copies).
void load_weights(Executor& executor, const ModelSpec& spec, const SafetensorsSet& files);

// Fills `into`, f32, bf16 or f16 in the arena, from a stored tensor of the same element count.
void load_tensor(Executor& executor, const TensorView& into, const SafetensorsSet& files,
                 const std::string& stored_name);

// Appends a tensor of the arena to a file that declares it as `stored`, both f32, bf16 or f16; conversions go through
// `staging`.
void write_tensor(SafetensorsWriter& writer, const std::string& name, const Executor& executor, const TensorView& view,
                  StoredType stored, std::span<std::byte> staging);

// Writes the plan's tensors of a role (without narrow copies) to a safetensors file as `stored`; u8 is unchanged.
void save_tensors(Executor& executor, Role role, StoredType stored, const std::filesystem::path& path);

}  // namespace headroom
