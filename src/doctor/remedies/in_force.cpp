#include "doctor/remedies/in_force.h"

#include <fmt/format.h>

namespace headroom::doctor {
namespace {

struct Setting {
  std::string_view technique;
  std::string_view set;     // in the remedy's text; empty: any
  std::string_view posted;  // as the post writes it where it is on
};
constexpr Setting kSettings[] = {
    {"serve-offload", "device_map", "device_map=\"auto\"|device_map='auto'|device_map = \"auto\"|device_map = 'auto'"},
    {"checkpointing",
     {},
     "gradient_checkpointing=true|gradient_checkpointing: true|gradient_checkpointing true|use_gradient_checkpointing|"
     "gradient_checkpointing_enable()|--checkpoint-activations|--activation-checkpointing"},
    {"half-inference", "dtype",
     "dtype=torch.float16|dtype=torch.bfloat16|dtype = torch.float16|dtype = torch.bfloat16"},
    {"flash-attention", "flash_attention_2",
     "attn_implementation=\"flash_attention_2\"|flash_attn: fa2|flash_attn fa2"},
    {"qlora",
     {},
     "qlora example|qlora_example|qlora.yml|qlora.yaml|using qlora|use qlora|with qlora|qlora 4bit|用qlora|qlora微调|"
     "load_in_4bit=true|load_in_4bit: true|quantization_bit: 4|quantization_bit 4|--load_in_4bit"},
    {"optimizer-8bit", {}, "adamw8bit|adamw_8bit|paged_adamw_8bit|adamw_bnb_8bit|use_8bit_adam|bnb.optim.adam"},
    {"half-weights", "\"enabled\": true", "--fp16|--bf16"},
    {"half-weights", {}, "qlora|load_in_4bit|quantization_bit"},
    {"mixed-precision", "\"enabled\": true", "--fp16|--bf16"},
    {"eager", "--enforce-eager", "--enforce-eager|enforce_eager=true"},
};

std::string_view in_force(const CaseView& view, const Remedy& remedy) {
  if (remedy.set.find("use_reentrant\": False") != std::string::npos) return {};  // cures what is on
  for (const Setting& setting : kSettings) {
    if (remedy.name != setting.technique || remedy.set.find(setting.set) == std::string::npos) continue;
    const std::string_view logged = view.log_says(setting.posted);
    return logged.empty() ? view.setup_says(setting.posted) : logged;
  }
  return {};
}

// Weights on the host take the states with them.
void leave_out_the_lesser_offload(Findings& findings) {
  const auto offered = [&](std::string_view name) -> const Remedy* {
    for (const Remedy& remedy : findings.remedies)
      if (remedy.name == name) return &remedy;
    return nullptr;
  };
  const Remedy *weights = offered("offload-parameters"), *states = offered("offload-optimizer");
  if (!weights || !states || weights->tried || states->evidence <= 0 || weights->evidence <= states->evidence) return;
  findings.refused.push_back({states->name, "weights on the host take the states with them"});
  std::erase_if(findings.remedies, [&](const Remedy& remedy) { return remedy.name == "offload-optimizer"; });
}

}  // namespace

void leave_out_what_is_in_force(const CaseView& view, Findings& findings) {
  if (view.has_job()) return;
  leave_out_the_lesser_offload(findings);
  std::erase_if(findings.remedies, [&](const Remedy& remedy) {
    const std::string_view posted = in_force(view, remedy);
    if (posted.empty()) return false;
    findings.refused.push_back({remedy.name, fmt::format("`{}` in the post: it is on already", posted)});
    return true;
  });
}

}  // namespace headroom::doctor
