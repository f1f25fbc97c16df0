// Options for the optimizer. HF's names: transformers' OptimizerNames; Oumi's: its build_optimizer.
#include "doctor/remedies/option_tables.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum OptionLine::Form;

constexpr OptionLine kLines[] = {
    {"fused-optimizer", hf_trainer, keys, "optim=adamw_torch_fused"},
    {"fused-optimizer", axolotl, keys, "optimizer=adamw_torch_fused"},
    {"fused-optimizer", oumi, keys, "training.optimizer=adamw_torch_fused"},
    {"fused-optimizer", torchtune, keys, "optimizer.fused=True"},
    {"fused-optimizer", litgpt, missing, "LitGPT fuses by itself where the device can"},
    {"fused-optimizer", deepspeed, missing, "DeepSpeed's own Adam is fused already"},
    {"fused-optimizer", pytorch_script, text, "torch.optim.AdamW(..., fused=True), or foreach=False"},
    {"optimizer-8bit", hf_trainer, keys, "optim=adamw_bnb_8bit"},
    {"optimizer-8bit", axolotl, keys, "optimizer=adamw_bnb_8bit"},
    {"optimizer-8bit", oumi, keys, "training.optimizer=adamw_8bit"},
    {"optimizer-8bit", torchtune, keys, "optimizer._component_=bitsandbytes.optim.AdamW8bit"},
    {"optimizer-8bit", litgpt, keys, "optimizer=bitsandbytes.optim.AdamW8bit"},
    {"optimizer-8bit", neox, keys, "use_bnb_optimizer=True"},
    {"optimizer-8bit", deepspeed, missing,
     "ZeRO does not know 8-bit optimizers: offload_optimizer, or ZeRO with more GPUs"},
    {"optimizer-8bit", pytorch_script, text, "bitsandbytes.optim.AdamW8bit(model.parameters(), ...)"},
    {"paged-optimizer", hf_trainer, keys, "optim=paged_adamw_32bit"},
    {"paged-optimizer", axolotl, keys, "optimizer=paged_adamw_32bit"},
    {"paged-optimizer", oumi, keys, "training.optimizer=paged_adamw_32bit"},
    {"paged-optimizer", torchtune, keys, "optimizer._component_=bitsandbytes.optim.PagedAdamW"},
    {"paged-optimizer", litgpt, keys, "optimizer=bitsandbytes.optim.PagedAdamW"},
    {"paged-optimizer", deepspeed, missing, "not under ZeRO: \"offload_optimizer\": {\"device\": \"cpu\"} does this"},
    {"paged-optimizer", pytorch_script, text, "bitsandbytes.optim.PagedAdamW(model.parameters(), ...)"},
    {"adafactor", hf_trainer, keys, "optim=adafactor"},
    {"adafactor", axolotl, keys, "optimizer=adafactor"},
    {"adafactor", oumi, keys, "training.optimizer=adafactor"},
    {"adafactor", torchtune, keys, "optimizer._component_=torch.optim.Adafactor"},
    {"adafactor", litgpt, keys, "optimizer=Adafactor"},
    {"adafactor", deepspeed, missing, "ZeRO shards AdamW's states: a higher stage does more than another optimizer"},
    {"adafactor", pytorch_script, text,
     "transformers.Adafactor(params, relative_step=False, scale_parameter=False, lr=...)"},
    {"lion", hf_trainer, keys, "optim=lion_32bit"},
    {"lion", axolotl, keys, "optimizer=lion_32bit"},
    {"lion", oumi, missing, "not in Oumi: adamw_8bit takes less than Lion in 32 bits"},
    {"lion", torchtune, keys, "optimizer._component_=bitsandbytes.optim.Lion"},
    {"lion", litgpt, keys, "optimizer=bitsandbytes.optim.Lion"},
    {"lion", deepspeed, keys, "optimizer.type=Lion"},
    {"lion", pytorch_script, text, "bitsandbytes.optim.Lion(model.parameters(), ...)"},
    {"sgd", hf_trainer, keys, "optim=sgd"},
    {"sgd", axolotl, keys, "optimizer=sgd"},
    {"sgd", oumi, keys, "training.optimizer=sgd"},
    {"sgd", torchtune, keys, "optimizer._component_=torch.optim.SGD"},
    {"sgd", litgpt, keys, "optimizer=SGD"},
    {"sgd", neox, keys, "optimizer.type=sgd"},
    {"sgd", deepspeed, keys, "optimizer.type=SGD; zero_allow_untested_optimizer=True"},
    {"sgd", pytorch_script, text, "torch.optim.SGD(model.parameters(), ...)"},
    {"optimizer-in-backward", torchtune, keys,
     "optimizer_in_bwd=True; gradient_accumulation_steps=1; clip_grad_norm=None"},
    {"optimizer-in-backward", hf_trainer, missing,
     "the Trainer has it only for GaLore, LOMO and APOLLO (optim=lomo, galore_adamw_layerwise: other optimizers)"},
    {"optimizer-in-backward", deepspeed, missing, "not under ZeRO: offload_optimizer frees the gradients instead"},
    {"optimizer-in-backward", litgpt, missing, "not in LitGPT"},
    {"optimizer-in-backward", pytorch_script, text,
     "param.register_post_accumulate_grad_hook(...) with one optimizer per weight, no clipping, no accumulation"},
    {"set-to-none", hf_trainer, missing, "the Trainer does so already"},
    {"set-to-none", pytorch_script, text, "optimizer.zero_grad(set_to_none=True)"},
};

}  // namespace

std::span<const OptionLine> optimizer_options() { return kLines; }

}  // namespace headroom::doctor
