// The inverse of reading: how a system writes a field of a Job and its value.
#pragma once

#include <optional>
#include <string>

#include "doctor/config/job.h"
#include "doctor/config/patch.h"

namespace headroom::doctor {

// An option as the user writes it: the edit of the text, and the text to show.
struct Spelling {
  std::string file;  // the source to edit; empty: no source sets the field yet
  Edit edit;
  std::string text;  // "per_device_train_batch_size: 2", "--max-model-len 8192", "bf16=True"
};

// How to set `field` of the job ("micro_batch", "extras.liger") to `value` (a number, "true", or a canonical name such
// as adamw_8bit, zero3, cpu, flash_attention_2, nf4): where the job sets it now, else under the system's main key for
// it, in the language `style` (YAML and JSON paths, options, arguments of TrainingArguments and similar calls). nullopt
// when the system has no key for the field, or no name for the value.
std::optional<Spelling> spelling_of(const Job& job, const std::string& field, const std::string& value,
                                    SourceKind style);

}  // namespace headroom::doctor
