// The other direction: how a system spells a field of a Job and its value.
#pragma once

#include <optional>
#include <string>

#include "doctor/config/job.h"
#include "doctor/config/patch.h"

namespace headroom::doctor {

// An option as the user writes it: the edit for the text, and the words for people.
struct Spelling {
  std::string file;  // which source of the job to edit; empty: the field is set nowhere yet
  Edit edit;
  std::string text;  // "per_device_train_batch_size: 2", "--max-model-len 8192", "bf16=True"
};

// How to set `field` of the job ("micro_batch", "extras.liger") to `value` (a number, "true", a canonical name such as
// adamw_8bit, zero3, cpu, flash_attention_2, nf4): at the place where the job sets it now, else under the system's main
// key for it, in the language of `style` (YAML and JSON paths, options, arguments of TrainingArguments and its like).
// nullopt when the system has no key for the field, or none for that value.
std::optional<Spelling> spelling_of(const Job& job, const std::string& field, const std::string& value,
                                    SourceKind style);

}  // namespace headroom::doctor
