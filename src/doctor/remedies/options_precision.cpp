// Options for precision and for what is kept for the backward pass.
#include "doctor/remedies/option_tables.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum OptionLine::Form;

constexpr OptionLine kLines[] = {
    {"mixed-precision", hf_trainer, keys, "{short}=True"},
    {"mixed-precision", oumi, keys, "training.mixed_precision_dtype={upper}"},
    {"mixed-precision", accelerate, keys, "mixed_precision={short}", "Accelerator(mixed_precision=\"{short}\")"},
    {"mixed-precision", deepspeed, keys, "{short}.enabled=True"},
    {"mixed-precision", litgpt, keys, "precision={litgpt}-mixed", "--precision {litgpt}-mixed"},
    {"mixed-precision", torchtune, missing, "torchtune has no autocast: dtype: bf16 holds the weights in 16 bits"},
    {"mixed-precision", pytorch_script, text, "with torch.autocast(\"cuda\", dtype=torch.{dtype}):{scaler}"},
    {"half-weights", hf_trainer, text,
     "from_pretrained(..., dtype=torch.{dtype})  (torch_dtype= before transformers 4.56)"},
    {"half-weights", trl, keys, "dtype={dtype}", "dtype=torch.{dtype} in from_pretrained() or model_init_kwargs"},
    {"half-weights", axolotl, keys, "{dtype}=True"},
    {"half-weights", llamafactory, keys, "pure_bf16=True"},
    {"half-weights", oumi, keys, "model.torch_dtype_str={dtype}"},
    {"half-weights", litgpt, keys, "precision={litgpt}-true", "--precision {litgpt}-true"},
    {"half-weights", torchtune, keys, "dtype={short}"},
    {"half-weights", deepspeed, missing,
     "DeepSpeed keeps float32 masters under \"bf16\" and \"fp16\": shard or offload the optimizer instead"},
    {"half-weights", pytorch_script, text, "model.to(torch.{dtype}) before the optimizer is made"},
    {"half-inference", litgpt, keys, "precision={litgpt}-true"},
    {"half-inference", hf_trainer, text, "from_pretrained(..., dtype=torch.{dtype})"},
    {"half-inference", llama_server, missing, "GGUF files carry their precision: take a Q4_K_M or Q8_0 file"},
    {"half-inference", vllm, text, "--dtype {dtype}"},
    {"half-inference", pytorch_script, text, "model.to(torch.{dtype})"},
    {"checkpointing", hf_trainer, keys,
     "gradient_checkpointing=True; gradient_checkpointing_kwargs={\"use_reentrant\": False}"},
    {"checkpointing", llamafactory, keys, "disable_gradient_checkpointing=False"},
    {"checkpointing", oumi, keys,
     "training.enable_gradient_checkpointing=True; training.gradient_checkpointing_kwargs={\"use_reentrant\": False}"},
    {"checkpointing", torchtune, keys, "enable_activation_checkpointing=True"},
    {"checkpointing", neox, keys, "checkpoint_activations=True; checkpoint_num_layers=1"},
    {"checkpointing", accelerate, keys, "fsdp_config.fsdp_activation_checkpointing=True"},
    {"checkpointing", litgpt, missing,
     "LitGPT checkpoints only under FSDP (--devices 2 or more); on one device add "
     "torch.utils.checkpoint in litgpt/model.py, or use --precision bf16-true"},
    {"checkpointing", pytorch_script, text,
     "model.gradient_checkpointing_enable() or torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)"},
    {"activation-offload", trl, keys, "activation_offloading=True"},
    {"activation-offload", axolotl, keys, "gradient_checkpointing=True; activation_offloading=True"},
    {"activation-offload", torchtune, keys, "enable_activation_offloading=True"},
    {"activation-offload", deepspeed, keys, "activation_checkpointing.cpu_checkpointing=True"},
    {"activation-offload", pytorch_script, text, "with torch.autograd.graph.save_on_cpu(pin_memory=True):"},
};

}  // namespace

std::span<const OptionLine> precision_options() { return kLines; }

}  // namespace headroom::doctor
