// Handlers that several systems share: what a rule does with a value.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "doctor/config/key_table.h"
#include "doctor/config/values.h"

namespace headroom::doctor {

// Each sets the field that rule.field names (job_fields.h). A rule whose field has another type is an InternalError.
std::string_view set_whole(Draft& draft, const Setting& setting, const KeyRule& rule);  // at least 0
std::string_view set_count(Draft& draft, const Setting& setting, const KeyRule& rule);  // at least 1
std::string_view set_real(Draft& draft, const Setting& setting, const KeyRule& rule);   // at least 0
std::string_view set_truth(Draft& draft, const Setting& setting, const KeyRule& rule);
std::string_view set_opposite(Draft& draft, const Setting& setting, const KeyRule& rule);  // true sets false
std::string_view set_dtype(Draft& draft, const Setting& setting, const KeyRule& rule);     // "auto" sets nothing
// Sets a field, for handlers that parse numbers themselves.
std::optional<int64_t>& whole_field_of(Draft& draft, const KeyRule& rule);

// Each does what its name says with the field in its name.
std::string_view set_model(Draft& draft, const Setting& setting, const KeyRule& rule);
std::string_view add_further_model(Draft& draft, const Setting& setting, const KeyRule& rule);
std::string_view set_optimizer(Draft& draft, const Setting& setting, const KeyRule& rule);
std::string_view set_attention(Draft& draft, const Setting& setting, const KeyRule& rule);
std::string_view set_zero_stage(Draft& draft, const Setting& setting, const KeyRule& rule);
std::string_view set_offload_parameters(Draft& draft, const Setting& setting, const KeyRule& rule);
std::string_view set_offload_optimizer(Draft& draft, const Setting& setting, const KeyRule& rule);
std::string_view set_backward_prefetch(Draft& draft, const Setting& setting, const KeyRule& rule);
std::string_view set_objective(Draft& draft, const Setting& setting, const KeyRule& rule);
std::string_view set_gpus(Draft& draft, const Setting& setting, const KeyRule& rule);  // also "auto", "all", "0,1"
std::string_view set_lora_rank(Draft& draft, const Setting& setting, const KeyRule& rule);
std::string_view set_lora_alpha(Draft& draft, const Setting& setting, const KeyRule& rule);
std::string_view set_lora_dropout(Draft& draft, const Setting& setting, const KeyRule& rule);
std::string_view set_lora_targets(Draft& draft, const Setting& setting, const KeyRule& rule);
std::string_view set_lora_saved(Draft& draft, const Setting& setting, const KeyRule& rule);
std::string_view set_lora_dora(Draft& draft, const Setting& setting, const KeyRule& rule);
// Puts a number into job.parallel.buffers or job.architecture, under the name after the dot of rule.field.
std::string_view set_buffer(Draft& draft, const Setting& setting, const KeyRule& rule);
std::string_view set_architecture(Draft& draft, const Setting& setting, const KeyRule& rule);
// Puts the text into draft.extras, under the name after "extras.".
std::string_view set_extra(Draft& draft, const Setting& setting, const KeyRule& rule);
// Puts the setting into draft.facts under rule.field, for a finish function.
std::string_view remember(Draft& draft, const Setting& setting, const KeyRule& rule);
// The value is the name of another local file.
std::string_view refer(Draft& draft, const Setting& setting, const KeyRule& rule);

// Makes the LoRA settings from the facts "lora.*", with a system's defaults where no key sets them.
struct LoraDefaults {
  int64_t rank = 8;
  double alpha = 8;
  double dropout = 0;
};
void finish_lora(Draft& draft, const LoraDefaults& defaults);
// Sets sharding, prefetch and offloading from the facts "fsdp.*" when FSDP is on.
void finish_fsdp(Draft& draft);
// Sets job.precision.autocast from the facts; fp8 has precedence over bf16, bf16 over fp16.
void finish_autocast(Draft& draft, const std::string& bf16, const std::string& fp16, const std::string& fp8);
// Sets job.precision.quantization from "bnb_4bit_quant_type" and similar facts.
void finish_bitsandbytes(Draft& draft);

}  // namespace headroom::doctor
