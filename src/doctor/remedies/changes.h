// Changes to a job by the names of its fields: how a remedy says what it does to the job and to the user's file.
#pragma once

#include "doctor/remedies/remedy.h"

namespace headroom::doctor {

// `job` with every change applied in order. Truth values are "true" and "false", sharding "none|ddp|zero1|zero2|zero3|
// hybrid", offload "none|cpu|nvme", LoRA "lora" = rank or "none", "lora.rank"; "extras.NAME" sets an extra. An unknown
// name or a value that is none is an InternalError: changes come from our own rules.
Job with_changes(Job job, const Changes& changes);

// Whether two lists change one field to different values. Sharding and the number of GPUs never clash: the higher
// holds.
bool clash(const Changes& a, const Changes& b);
// Both lists as one; of two values of sharding or gpus the higher.
Changes together(Changes a, const Changes& b);

}  // namespace headroom::doctor
