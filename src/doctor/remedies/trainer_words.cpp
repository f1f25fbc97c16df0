#include "doctor/remedies/trainer_words.h"

#include <span>

#include "doctor/remedies/log_job.h"
#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

struct TrainerOption {
  std::string_view technique, set;
};
struct Trainer {
  std::string_view words;
  std::string_view except;  // words beside which it is another trainer
  std::span<const TrainerOption> options;
};

constexpr TrainerOption kFabric[] = {
    {"offload-parameters", "Fabric(strategy=FSDPStrategy(..., cpu_offload=True))"},
    {"offload-optimizer", "Fabric(strategy=DeepSpeedStrategy(stage=2, offload_optimizer=True))"},
    {"shard", "Fabric(devices=<all>, strategy=FSDPStrategy(auto_wrap_policy={Block})), then fabric.setup(model)"},
    {"checkpointing", "FSDPStrategy(..., activation_checkpointing_policy={Block})"},
    {"mixed-precision", "Fabric(precision=\"bf16-mixed\")"},
    {"half-weights", "Fabric(precision=\"bf16-true\")"},
};
constexpr TrainerOption kLightning[] = {
    {"offload-parameters",
     "Trainer(strategy=FSDPStrategy(cpu_offload=True)), or strategy=\"deepspeed_stage_3_offload\""},
    {"offload-optimizer", "Trainer(strategy=\"deepspeed_stage_2_offload\")"},
    {"shard", "Trainer(devices=<all>, strategy=\"fsdp\"), or strategy=\"deepspeed_stage_3\""},
    {"mixed-precision", "Trainer(precision=\"bf16-mixed\") (\"16-mixed\" before Ampere; releases before 2: 16)"},
    {"half-weights", "Trainer(precision=\"bf16-true\")"},
    {"micro-batch", "batch_size=<half> in the loader, Trainer(accumulate_grad_batches=<double>)"},
};
constexpr TrainerOption kMegatron[] = {
    {"checkpointing",
     "--checkpoint-activations (today: --recompute-granularity full --recompute-method uniform --recompute-num-layers "
     "1)"},
    {"shard", "--tensor-model-parallel-size 2 (older: --model-parallel-size 2), --use-distributed-optimizer"},
    {"offload-parameters", "--optimizer-cpu-offload (Megatron-Core): the states alone; ZeRO-3 takes the weights too"},
    {"offload-optimizer",
     "--optimizer-cpu-offload (Megatron-Core); with DeepSpeed \"offload_optimizer\": {\"device\": \"cpu\"}"},
    {"micro-batch", "--micro-batch-size <half> (older: --batch-size); --global-batch-size stays"},
    {"sequence-length", "--seq-length <half>"},
    {"flash-attention", "--use-flash-attn"},
    {"mixed-precision", "--bf16 (--fp16 before Ampere)"},
};
constexpr TrainerOption kRecipes[] = {
    {"offload-parameters", "--fsdp_config.fsdp_cpu_offload True"},
    {"shard", "torchrun --nproc_per_node <all> ... --enable_fsdp"},
    {"checkpointing", "--fsdp_config.fsdp_activation_checkpointing True"},
    {"half-weights", "--fsdp_config.pure_bf16"},
    {"micro-batch", "--batch_size_training <half> --gradient_accumulation_steps <double>"},
    {"sequence-length", "--context_length <half>"},
    {"lora", "--use_peft --peft_method lora"},
    {"qlora", "--use_peft --peft_method lora --quantization 4bit"},
};
constexpr TrainerOption kComposer[] = {
    {"checkpointing", "fsdp_config: activation_checkpointing: true"},
    {"shard", "fsdp_config: sharding_strategy: FULL_SHARD"},
    {"activation-offload", "fsdp_config: activation_cpu_offload: true"},
    {"micro-batch", "device_train_microbatch_size: auto (or half of it)"},
    {"sequence-length", "max_seq_len: <half>"},
};
constexpr TrainerOption kColossal[] = {
    {"offload-parameters",
     "GeminiPlugin(offload_optim_frac=1.0, offload_param_frac=1.0), or placement_policy=\"auto\""},
    {"offload-optimizer", "LowLevelZeroPlugin(stage=2, cpu_offload=True)"},
    {"shard", "the plugin gemini, or 3d with a tp_size of 2 and more"},
    {"checkpointing", "--grad_checkpoint (model.gradient_checkpointing_enable())"},
    {"flash-attention", "--use_flash_attn"},
};
constexpr TrainerOption kXtuner[] = {
    {"offload-parameters", "--deepspeed deepspeed_zero3_offload"},
    {"offload-optimizer", "--deepspeed deepspeed_zero2_offload"},
    {"shard", "NPROC_PER_NODE=<all> xtuner train ... --deepspeed deepspeed_zero3"},
    {"micro-batch", "batch_size = <half>, accumulative_counts = <double> in the configuration"},
    {"sequence-length", "max_length = <half> in the configuration (pack_to_max_length=True fills rows to it)"},
};
constexpr TrainerOption kSwift[] = {
    {"offload-parameters", "--deepspeed zero3_offload"},
    {"offload-optimizer", "--deepspeed zero2_offload"},
    {"shard", "--deepspeed zero3"},
    {"checkpointing", "--gradient_checkpointing true"},
    {"micro-batch", "--per_device_train_batch_size <half> --gradient_accumulation_steps <double>"},
    {"sequence-length", "--max_length <half>"},
    {"flash-attention", "--attn_impl flash_attn"},
};
constexpr TrainerOption kTrl[] = {
    {"offload-parameters",
     "accelerate launch --config_file deepspeed_zero3.yaml, with offload_param_device: cpu in it"},
    {"shard", "accelerate launch --config_file fsdp2.yaml --num_processes <all>"},
    {"checkpointing", "gradient_checkpointing=True in the trainer's Config"},
    {"micro-batch", "per_device_train_batch_size=<half>, gradient_accumulation_steps=<double> in the trainer's Config"},
    {"sequence-length", "max_length=<half> in the trainer's Config (max_seq_length before TRL 0.16)"},
    {"optimizer-8bit", "optim=\"adamw_bnb_8bit\""},
    {"paged-optimizer", "optim=\"paged_adamw_8bit\""},
};
constexpr TrainerOption kTrainerOfHf[] = {
    {"offload-parameters", "--fsdp \"full_shard auto_wrap offload\""},
    {"shard", "--fsdp \"full_shard auto_wrap\" --fsdp_transformer_layer_cls_to_wrap <layer>"},
    {"checkpointing", "--gradient_checkpointing True"},
    {"mixed-precision", "--bf16 True (--fp16 True before Ampere)"},
    {"micro-batch", "--per_device_train_batch_size <half> --gradient_accumulation_steps <double>"},
    {"flash-attention", "from_pretrained(..., attn_implementation=\"flash_attention_2\")"},
    {"optimizer-8bit", "--optim adamw_bnb_8bit"},
    {"paged-optimizer", "--optim paged_adamw_8bit"},
};
constexpr TrainerOption kAccelerate[] = {
    {"offload-parameters", "accelerate config: fsdp_config: fsdp_offload_params: true"},
    {"offload-optimizer", "accelerate config: deepspeed_config: offload_optimizer_device: cpu"},
    {"shard", "accelerate config: distributed_type: FSDP, fsdp_config: fsdp_sharding_strategy: FULL_SHARD"},
    {"mixed-precision", "accelerate config: mixed_precision: bf16 (fp16 before Ampere)"},
};

// The most particular ones first.
constexpr Trainer kTrainers[] = {
    {"ms-swift|swift sft|swift pt |swift rlhf", {}, kSwift},
    {"xtuner", {}, kXtuner},
    {"llama-recipes|llama_recipes|llama-cookbook|llama_finetuning.py|batch_size_training", {}, kRecipes},
    {"llm-foundry|llmfoundry|mosaicml|device_train_microbatch_size|composer train", {}, kComposer},
    {"colossal", {}, kColossal},
    {"megatron|--num-layers|--num-attention-heads", "nemo", kMegatron},
    {"lightning fabric|lightning.fabric|fabric(|fabric.|with fabric|fabric's", {}, kFabric},
    {"lightning", {}, kLightning},
    {"sfttrainer|sftconfig|dpotrainer|dpoconfig|kto_trainer|ktotrainer|grpotrainer|rewardtrainer|with trl|trl's",
     "unsloth", kTrl},
    {"--fsdp |fsdp_transformer_layer_cls|trainingarguments|hf trainer|huggingface trainer|hugging face trainer|"
     "per_device_train_batch|stanford_alpaca|stanford alpaca|fastchat/train|fastchat.train",
     {},
     kTrainerOfHf},
    {"accelerate launch|accelerate config|fsdp_config|fsdp_sharding_strategy|using accelerate|with accelerate",
     {},
     kAccelerate},
};

const Trainer* trainer_of(const CaseView& view) {
  const auto says = [&](std::string_view words) { return !words.empty() && view.says(words); };
  for (const Trainer& trainer : kTrainers)
    if (says(trainer.words) && !says(trainer.except)) return &trainer;
  return nullptr;
}

// "in PyTorch: " stands before code where nothing else shows PyTorch.
std::string_view without_its_name(std::string_view set) {
  constexpr std::string_view kName = "in PyTorch: ";
  return set.starts_with(kName) ? set.substr(kName.size()) : set;
}

// Code of PyTorch, or of a Trainer, as the option tables have it for a script that a person wrote.
bool code_of_a_script(const Remedy& remedy) {
  constexpr std::string_view kCode[] = {"fully_shard(",
                                        "torchrun --nproc_per_node",
                                        "torchao.optim",
                                        "model.to(torch.",
                                        "model.gradient_checkpointing_enable()",
                                        "DataLoader(..., batch_size",
                                        "a smaller batch_size: half",
                                        "torch.autocast",
                                        "cut where you tokenise",
                                        "shorter texts: ",
                                        "peft.get_peft_model",
                                        "bitsandbytes.optim",
                                        "torch.nn.functional.scaled_dot",
                                        "from_pretrained(..., quantization_config"};
  for (const std::string_view code : kCode)
    if (without_its_name(remedy.set).starts_with(code)) return true;
  return false;
}

// The values that were chosen for the job, where the option has "<half>" and "<double>".
std::string with_values(const Remedy& remedy, std::string_view option) {
  struct Place {
    std::string_view mark, field;
  };
  constexpr Place kPlaces[] = {{"<half>", "micro_batch"}, {"<half>", "sequence"}, {"<double>", "accumulation"}};
  std::string set(option);
  for (const Place& place : kPlaces)
    for (const auto& [field, value] : remedy.changes)
      if (const size_t at = set.find(place.mark); field == place.field && at != std::string::npos)
        set.replace(at, place.mark.size(), value);
  return set;
}

// Where a post shows no code, such code is said in words.
struct InWords {
  std::string_view technique, code, words;
};
constexpr InWords kInWords[] = {
    {"shard", "torchrun --nproc_per_node",
     "weights and states divided over the devices: ZeRO-3 (\"zero_optimization\": {\"stage\": 3}; stage 2 where the "
     "model does not go with it), or FSDP full_shard"},
    {"offload-parameters", "fully_shard(",
     "weights and states on the host: ZeRO-3 with offload_param and offload_optimizer, or FSDP with its CPU offload"},
    {"offload-optimizer", "torchao.optim",
     "states on the host: ZeRO with \"offload_optimizer\": {\"device\": \"cpu\"}"},
};
bool shows_code(const CaseView& view) {
  return !view.log_says("import torch|.backward()|optimizer.step|fully_shard|def |file \"").empty() ||
         !view.incident().setup_text.empty();
}
void say_in_words(const CaseView& view, Remedy& remedy) {
  if (!view.message() || view.message()->format != "words" || shows_code(view)) return;
  for (const InWords& each : kInWords)
    if (remedy.name == each.technique && without_its_name(remedy.set).starts_with(each.code)) {
      remedy.set = each.words;
      remedy.settings.clear();
    }
}

}  // namespace

void spell_for_the_trainer(const CaseView& view, Findings& findings) {
  const System system = view.job().system;
  const bool own = own_program(system) || system == System::deepspeed;
  if (!own || !view.training() || view.pool() != Pool::device || view.foreign_framework()) return;
  const Trainer* trainer = trainer_of(view);
  for (Remedy& remedy : findings.remedies) {
    if (!code_of_a_script(remedy)) continue;
    const TrainerOption* found = nullptr;
    for (const TrainerOption& option : trainer ? trainer->options : std::span<const TrainerOption>())
      if (option.technique == remedy.name) found = &option;
    if (found) {
      remedy.set = with_values(remedy, found->set);
      remedy.settings.clear();
    } else {
      say_in_words(view, remedy);
    }
  }
}

}  // namespace headroom::doctor
