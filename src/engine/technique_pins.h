// The options about techniques, as the planner's pins.
#pragma once

#include <map>
#include <string>

#include "models/model_spec.h"
#include "options/technique_options.h"
#include "planner/request.h"

namespace headroom {

// --technique, and the options that set one: --precision, --matmul-precision, --attention-order, --lora-*, --freeze,
// --packing, --group-by-length, --allow and --micro-batch-size (0: not given). Throws Error(usage) if two of them
// contradict each other, or the model's data cannot be ordered so.
std::map<std::string, Pin> technique_pins(const TechniqueOptions& options, int64_t micro_batch_size,
                                          const ModelSpec& spec);

// A quantized checkpoint is used as it is. Throws Error(usage) if a pin contradicts that.
void pin_stored_codes(PlanRequest& request, const ModelSpec& spec);
// The same of embedding and head, where the model generates: they stay codes on the CPU, unless an adapter, whose pin
// the request has, replaces them, or the form of the layers is named alone.
void pin_stored_embedding_and_head(PlanRequest& request, const ModelSpec& spec);

}  // namespace headroom
