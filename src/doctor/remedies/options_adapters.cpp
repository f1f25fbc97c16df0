// Options for adapters, frozen layers, quantized and smaller models.
#include "doctor/remedies/option_tables.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum OptionLine::Form;

constexpr OptionLine kLines[] = {
    {"lora", hf_trainer, text,
     "get_peft_model(model, LoraConfig(r={rank}, lora_alpha={alpha}, target_modules=\"all-linear\"))"},
    {"lora", trl, keys, "use_peft=True; lora_r={rank}; lora_alpha={alpha}",
     "SFTTrainer(..., peft_config=LoraConfig(r={rank}, lora_alpha={alpha}, target_modules=\"all-linear\"))"},
    {"lora", axolotl, keys, "adapter=lora; lora_r={rank}; lora_alpha={alpha}; lora_target_linear=True"},
    {"lora", llamafactory, keys, "finetuning_type=lora; lora_rank={rank}; lora_target=all"},
    {"lora", oumi, keys, "training.use_peft=True; peft.lora_r={rank}; peft.lora_alpha={alpha}"},
    {"lora", litgpt, text, "litgpt finetune_lora {model} --lora_r {rank} --lora_alpha {alpha}"},
    {"lora", torchtune, text, "tune run lora_finetune_{placement} with model._component_: {lora_builder}"},
    {"lora", deepspeed, text, "peft.get_peft_model(model, LoraConfig(r={rank})) before deepspeed.initialize"},
    {"lora", neox, missing, "GPT-NeoX trains no adapters: convert to HF and use TRL"},
    {"lora", pytorch_script, text, "peft.get_peft_model(model, LoraConfig(r={rank}, lora_alpha={alpha}))"},
    {"qlora", hf_trainer, text,
     "BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=\"nf4\", bnb_4bit_compute_dtype=torch.{dtype}) "
     "and LoraConfig(r={rank})"},
    {"qlora", trl, keys, "load_in_4bit=True; use_peft=True; lora_r={rank}",
     "from_pretrained(..., quantization_config=BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=\"nf4\", "
     "bnb_4bit_compute_dtype=torch.{dtype})) and SFTTrainer(..., peft_config=LoraConfig(r={rank}))"},
    {"qlora", axolotl, keys, "adapter=qlora; load_in_4bit=True; lora_r={rank}; lora_target_linear=True"},
    {"qlora", llamafactory, keys, "finetuning_type=lora; quantization_bit=4; quantization_method=bnb"},
    {"qlora", oumi, keys, "training.use_peft=True; peft.q_lora=True; peft.lora_r={rank}"},
    {"qlora", litgpt, text, "litgpt finetune_lora {model} --quantize bnb.nf4 --precision {litgpt}-true --devices 1"},
    {"qlora", torchtune, text, "tune run lora_finetune_single_device with model._component_: {qlora_builder}"},
    {"qlora", deepspeed, missing, "4-bit weights work with ZeRO-3 only as bnb_4bit_quant_storage of the compute dtype"},
    {"qlora", neox, missing, "GPT-NeoX trains no adapters: convert to HF and use TRL"},
    {"qlora", pytorch_script, text,
     "from_pretrained(..., quantization_config=BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=\"nf4\")) "
     "and peft"},
    {"freeze", oumi, keys, "model.freeze_layers=[{layers}]"},
    {"freeze", llamafactory, keys, "finetuning_type=freeze; freeze_trainable_layers={trainable}"},
    {"freeze", axolotl, text, "unfrozen_parameters: [{unfrozen}]"},
    {"freeze", neox, missing, "not in GPT-NeoX"},
    {"freeze", litgpt, missing, "not in LitGPT: litgpt finetune_adapter or finetune_lora freeze the base"},
    {"freeze", torchtune, missing, "not in torchtune: requires_grad_(False) in the recipe, or LoRA"},
    {"freeze", pytorch_script, text,
     "model.get_input_embeddings().requires_grad_(False); model.{stack}[:{frozen}].requires_grad_(False)"},
    {"int8-training", pytorch_script, text,
     "torchao.quantize_(model, int8_weight_only_quantized_training()) (prototype)"},
    {"no-qat", axolotl, text, "remove the section qat:"},
    {"no-qat", torchtune, text, "tune run full_finetune_... instead of a qat recipe; remove the section quantizer:"},
    {"no-qat", pytorch_script, text, "train without QATConfig(step=\"prepare\"); quantise after training"},
    {"smaller-model", hf_trainer, text, "from_pretrained(a model of at most {params})"},
    {"smaller-model", axolotl, text, "base_model: one of at most {params} parameters"},
    {"smaller-model", oumi, text, "model.model_name: one of at most {params} parameters"},
    {"smaller-model", vllm, text, "--model: one of at most {params} parameters"},
    {"smaller-model", pytorch_script, text, "a model of at most {params} parameters"},
};

}  // namespace

std::span<const OptionLine> adapter_options() { return kLines; }

}  // namespace headroom::doctor
