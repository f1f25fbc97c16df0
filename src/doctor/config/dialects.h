// The systems that doctor reads, one table each in dialect_<system>.cpp.
#pragma once

#include "doctor/config/key_table.h"

namespace headroom::doctor {

// Tables that several systems share.
const Dialect& fsdp_dialect();          // fsdp_config.*, as written by Accelerate, transformers and axolotl
const Dialect& deepspeed_dialect();     // DeepSpeed's JSON
const Dialect& peft_dialect();          // LoraConfig, adapter_config.json
const Dialect& bitsandbytes_dialect();  // BitsAndBytesConfig, quantization_config
const Dialect& script_dialect();        // model and data arguments that example scripts add to TrainingArguments
// Systems.
const Dialect& hf_trainer_dialect();
const Dialect& trl_dialect();
const Dialect& accelerate_dialect();
const Dialect& accelerate_launch_dialect();  // options of the launcher, before the script
const Dialect& torchrun_dialect();           // options of torchrun, deepspeed, srun and sbatch's script
const Dialect& slurm_dialect();
const Dialect& litgpt_dialect();
const Dialect& alpaca_lora_dialect();
const Dialect& oumi_dialect();
const Dialect& axolotl_dialect();
const Dialect& llamafactory_dialect();
const Dialect& llamafactory_v1_dialect();
const Dialect& torchtune_dialect();
const Dialect& neox_dialect();
const Dialect& vllm_dialect();
const Dialect& sglang_dialect();
const Dialect& llama_server_dialect();
const Dialect& tgi_dialect();
const Dialect& pytorch_dialect();  // DataLoader, torch.optim, autocast, FSDP ... in a script, as "call.argument"

}  // namespace headroom::doctor
