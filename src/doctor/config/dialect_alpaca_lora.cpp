// finetune.py of alpaca-lora and scripts copied from it: they have their own options and always train adapters.
#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

constexpr KeyRule kRules[] = {
    {"batch_size", set_count, "global_batch"},
    {"micro_batch_size", set_count, "micro_batch"},
    {"cutoff_len", set_count, "sequence"},
    {"lora_r", set_lora_rank, "lora"},
    {"lora_alpha", set_lora_alpha, "lora"},
    {"lora_dropout", set_lora_dropout, "lora"},
    {"lora_target_modules", set_lora_targets, "lora"},
    {"train_8bit", remember, "bnb.8bit"},
    {"train_4bit", remember, "bnb.4bit"},
};

constexpr Irrelevant kIrrelevant[] = {
    {"data, names and how long it trains",
     "output_dir num_epochs learning_rate val_set_size eval_steps save_steps train_on_inputs add_eos_token "
     "prompt_template_name prompt_type save_code run_id wandb_project wandb_run_name resume_from_checkpoint"},
};

// Adapters of rank 8; adapters and base weights are float16.
void finish(Draft& draft) {
  finish_lora(draft, {8, 16, 0.05});
  finish_bitsandbytes(draft);
  const Origin origin = draft.fact("lora.r") ? draft.fact("lora.r")->origin : Origin{};
  draft.imply(draft.job.precision.weights, std::string("float16"), "weight_dtype", origin);
  draft.imply(draft.job.precision.autocast, std::string("float16"), "autocast", origin);
}

constexpr DialectOf kBases[] = {script_dialect};
constexpr Dialect kDialect = {System::unknown, "alpaca-lora", kRules, kIrrelevant, {}, kBases, nullptr, finish};

}  // namespace

const Dialect& alpaca_lora_dialect() { return kDialect; }

}  // namespace headroom::doctor
