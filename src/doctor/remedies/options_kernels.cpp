// Options for attention, loss and compiled kernels.
#include "doctor/remedies/option_tables.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum OptionLine::Form;

constexpr OptionLine kLines[] = {
    {"flash-attention", hf_trainer, text, "from_pretrained(..., attn_implementation=\"{attn}\")"},
    {"flash-attention", trl, keys, "attn_implementation={attn}",
     "attn_implementation=\"{attn}\" in from_pretrained() or model_init_kwargs"},
    {"flash-attention", axolotl, keys, "attn_implementation={attn}"},
    {"flash-attention", llamafactory, keys, "flash_attn={factory}"},
    {"flash-attention", oumi, keys, "model.attn_implementation={attn}"},
    {"flash-attention", neox, text, "\"attention_config\": [[[\"flash\"], {layers}]]"},
    {"flash-attention", litgpt, missing, "LitGPT always calls scaled_dot_product_attention: nothing to set"},
    {"flash-attention", torchtune, missing, "torchtune always calls scaled_dot_product_attention: nothing to set"},
    {"flash-attention", pytorch_script, text, "torch.nn.functional.scaled_dot_product_attention(q, k, v{causal})"},
    {"compile", hf_trainer, keys, "torch_compile=True"},
    {"compile", oumi, keys, "training.compile=True"},
    {"compile", torchtune, keys, "compile=True"},
    {"compile", deepspeed, text, "engine.compile()"},
    {"compile", litgpt, missing, "no option in LitGPT: pretraining compiles by itself, finetuning does not"},
    {"compile", neox, missing, "not in GPT-NeoX, which has fused kernels of its own"},
    {"compile", pytorch_script, text, "model = torch.compile(model)"},
    {"liger", hf_trainer, keys, "use_liger_kernel=True"},
    {"liger", axolotl, text,
     "plugins: [axolotl.integrations.liger.LigerPlugin], liger_fused_linear_cross_entropy: true"},
    {"liger", llamafactory, keys, "enable_liger_kernel=True"},
    {"liger", oumi, keys, "model.enable_liger_kernel=True"},
    {"liger", litgpt, missing, "not in LitGPT, whose loss is chunked already (lm_head_chunk_size 128)"},
    {"liger", torchtune, missing, "not in torchtune: its chunked loss does this part"},
    {"liger", neox, missing, "not in GPT-NeoX"},
    {"liger", pytorch_script, text,
     "liger_kernel.transformers.apply_liger_kernel_to_{family}() before the model is made"},
    {"chunked-loss", trl, keys, "loss_type=chunked_nll"},
    {"chunked-loss", hf_trainer, missing,
     "use_liger_kernel=True is the Trainer's way; TRL has loss_type=\"chunked_nll\""},
    {"chunked-loss", axolotl, keys, "chunked_cross_entropy=True"},
    {"chunked-loss", llamafactory, missing, "not in LLaMA-Factory: enable_liger_kernel: true does this"},
    {"chunked-loss", oumi, missing, "not in Oumi: model.enable_liger_kernel: true does this"},
    {"chunked-loss", neox, missing, "not in GPT-NeoX: a smaller train_micro_batch_size_per_gpu"},
    {"chunked-loss", litgpt, missing, "LitGPT's finetuning does so already (lm_head_chunk_size 128)"},
    {"chunked-loss", torchtune, keys, "loss._component_=torchtune.modules.loss.LinearCrossEntropyLoss"},
    {"chunked-loss", pytorch_script, text, "a loss over {chunk} rows of the logits at a time, under checkpoint()"},
};

}  // namespace

std::span<const OptionLine> kernel_options() { return kLines; }

}  // namespace headroom::doctor
