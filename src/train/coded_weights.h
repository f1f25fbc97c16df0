// Weights that the arena keeps as codes in blocks (passes/quantize_weights.h), made of a checkpoint's tensors.
#pragma once

#include <string>

#include "formats/safetensors.h"
#include "plan/plan.h"
#include "runtime/executor.h"

namespace headroom {

// Quantises a stored tensor (F32, F16 or BF16) into a weight of the arena, piece by piece through the staging of
// program "load"; the tensor is read twice, for the scales and then for the codes, with double quantisation once more. Throws Error as
// SafetensorsSet::read.
void load_coded(Executor& executor, const PersistentTensor& weight, const SafetensorsSet& files,
                const std::string& stored);

}  // namespace headroom
