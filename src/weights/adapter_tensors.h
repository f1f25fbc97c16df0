// The tensors of an adapter's file and the position of their values in the arena.
//
// A [r, in] and B [out, r] of a module, DoRA's magnitude [out], and modules to save are in the arena as they are
// stored. For an experts' parameter PEFT stores A [experts r, in], which is the arena's [experts, r, in], and B [out, r
// experts], with the expert last: the arena has B [experts, out, r], for gate_up_proj one for the gates and one for the
// ups, whose rows follow one another in the file. The adapters of a layer's gate_up_proj and down_proj are nested: the
// first is "experts.base_layer", or "experts" if it is the only one.
#pragma once

#include <string>
#include <vector>

#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"
#include "passes/lora.h"
#include "plan/plan.h"
#include "runtime/executor.h"

namespace headroom {

struct AdapterTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<std::string> parts;  // tensors of the plan, one after the other
  int64_t experts = 0;             // above 0: a part's expert is the last dimension in the file, the first in the arena
};

// Every tensor of the adapter's file, in the plan's order.
std::vector<AdapterTensor> adapter_tensors(const Plan& plan, const LoraOptions& options);

// Appends a tensor in the plan's dtype; transposed ones go through the staging of program "save".
void write_adapter_tensor(Executor& executor, const AdapterTensor& tensor, SafetensorsWriter& writer);
// Fills its parts from a stored tensor of its shape; transposed ones go through the staging of program "load".
void read_adapter_tensor(Executor& executor, const AdapterTensor& tensor, const SafetensorsFile& file,
                         const StoredTensor& stored);

}  // namespace headroom
