// Changes to a job by field name: what a remedy does to the job and to the user's file.
#pragma once

#include "doctor/remedies/remedy.h"

namespace headroom::doctor {

// `job` with every change applied in order. Truth values are "true" and "false", sharding
// "none|ddp|zero1|zero2|zero3|hybrid", offload "none|cpu|nvme", LoRA "lora" = rank or "none", "lora.rank";
// "extras.NAME" sets an extra. Changes come from doctor's own rules, so an unknown name or an invalid value is an
// InternalError.
Job with_changes(Job job, const Changes& changes);

// Whether two lists set one field to different values. Sharding and the number of GPUs never clash: the higher value is
// used.
bool clash(const Changes& a, const Changes& b);
// Both lists merged; for sharding and gpus the higher value.
Changes together(Changes a, const Changes& b);

}  // namespace headroom::doctor
