// The record of lora, and its options as a pin's setting.
#pragma once

#include "passes/lora.h"
#include "planner/technique.h"

namespace headroom {

namespace techniques {
extern const Technique lora;
}

// The options as one setting; rank 0: none.
Pin lora_pin(const LoraOptions& options);
void pin_lora(PlanRequest& request, const LoraOptions& options);
// The options in a request's pin; rank 0 if there is none. Throws Error(usage) for a setting that lora_pin() does not
// make.
LoraOptions requested_lora(const PlanRequest& request);

}  // namespace headroom
