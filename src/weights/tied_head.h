// An embedding that is also the head, in an adapter's file. PEFT loads a module to save as a separate copy, which
// unties the two: the file has the values under both names, and both are modules to save.
#pragma once

#include <string>

#include "formats/safetensors.h"
#include "models/model_spec.h"
#include "passes/lora.h"

namespace headroom {

// Whether such an embedding is trained in full with the adapters.
bool saves_tied_head(const ModelSpec& spec, const LoraOptions& options);

// Throws Error(usage) if it is and the head has a bias (masked-LM): PEFT's copy of the head would have one too.
void refuse_tied_head_with_bias(const ModelSpec& spec, const LoraOptions& options);

// The head's name in an adapter's file, and as a module to save: "lm_head". Empty if no head is tied.
std::string tied_head_in_adapter(const ModelSpec& spec);
std::string tied_head_module(const ModelSpec& spec);

// Throws Error(format) for an adapter that holds only one of the two, or different values: the model has one weight for
// both.
void check_tied_head(const SafetensorsFile& adapter, const ModelSpec& spec);

}  // namespace headroom
