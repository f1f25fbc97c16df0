// The tensors of an adapter's file and where their values lie in the arena.
//
// A [r, in] and B [out, r] of a module, and modules to save, lie there as they are stored. Of an experts' parameter
// PEFT stores A [experts r, in], which is the arena's [experts, r, in], and B [out, r experts], the expert last: the
// arena has B [experts, out, r], for gate_up_proj one of the gates and one of the ups, whose rows follow one another in
// the file. The adapters of a layer's gate_up_proj and down_proj are nested: the first is "experts.base_layer", or
// "experts" when it is alone.
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
  int64_t experts = 0;             // above 0: in the file a part's expert is the last dimension, here the first
};

// Every tensor of the adapter's file, in the plan's order.
std::vector<AdapterTensor> adapter_tensors(const Plan& plan, const LoraOptions& options);

// Appends a tensor in the plan's dtype; turned ones go through the staging of program "save".
void write_adapter_tensor(Executor& executor, const AdapterTensor& tensor, SafetensorsWriter& writer);
// Fills its parts from a stored tensor of its shape; turned ones go through the staging of program "load".
void read_adapter_tensor(Executor& executor, const AdapterTensor& tensor, const SafetensorsFile& file,
                         const StoredTensor& stored);

}  // namespace headroom
