// Options for the batch, the sequence and evaluation.
#include "doctor/remedies/option_tables.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum OptionLine::Form;

constexpr OptionLine kLines[] = {
    {"micro-batch", hf_trainer, keys, "per_device_train_batch_size={micro}; gradient_accumulation_steps={acc}"},
    {"micro-batch", axolotl, keys, "micro_batch_size={micro}; gradient_accumulation_steps={acc}"},
    {"micro-batch", oumi, keys,
     "training.per_device_train_batch_size={micro}; training.gradient_accumulation_steps={acc}"},
    {"micro-batch", litgpt, keys, "train.micro_batch_size={micro}",
     "micro_batch_size = {micro} (today: --train.micro_batch_size {micro})"},
    {"micro-batch", torchtune, keys, "batch_size={micro}; gradient_accumulation_steps={acc}"},
    {"micro-batch", deepspeed, keys, "train_micro_batch_size_per_gpu={micro}; gradient_accumulation_steps={acc}"},
    {"micro-batch", accelerate, text,
     "DataLoader(..., batch_size={micro}), Accelerator(gradient_accumulation_steps={acc})"},
    {"micro-batch", pytorch_script, text, "DataLoader(..., batch_size={micro}); optimizer.step() every {acc} batches"},
    {"auto-batch", hf_trainer, keys, "auto_find_batch_size=True"},
    {"auto-batch", litgpt, missing, "not in LitGPT: halve train.micro_batch_size by hand"},
    {"auto-batch", torchtune, missing, "not in torchtune: halve batch_size by hand"},
    {"auto-batch", deepspeed, missing, "not under DeepSpeed: halve train_micro_batch_size_per_gpu by hand"},
    {"auto-batch", oumi, missing, "not in Oumi: halve training.per_device_train_batch_size by hand"},
    {"auto-batch", pytorch_script, text, "@accelerate.utils.find_executable_batch_size around the training function"},
    {"sequence-length", hf_trainer, text,
     "tokenizer(..., truncation=True, max_length={seq}) (run_clm: --block_size {seq})"},
    {"sequence-length", trl, keys, "max_length={seq}"},
    {"sequence-length", axolotl, keys, "sequence_len={seq}"},
    {"sequence-length", llamafactory, keys, "cutoff_len={seq}"},
    {"sequence-length", oumi, keys, "model.model_max_length={seq}"},
    {"sequence-length", litgpt, keys, "train.max_seq_length={seq}",
     "override_max_seq_length = {seq} (today: --train.max_seq_length {seq})"},
    {"sequence-length", torchtune, keys, "tokenizer.max_seq_len={seq}"},
    {"sequence-length", neox, keys, "seq_length={seq}"},
    {"sequence-length", pytorch_script, text, "cut where you tokenise: max_length={seq}"},
    {"shorter-pack", trl, keys, "max_length={seq}; packing=True"},
    {"shorter-pack", axolotl, keys, "sequence_len={seq}; sample_packing=True"},
    {"shorter-pack", llamafactory, keys, "cutoff_len={seq}; packing=True"},
    {"shorter-pack", torchtune, keys, "tokenizer.max_seq_len={seq}; dataset.packed=True"},
    {"shorter-pack", oumi, keys, "model.model_max_length={seq}; data.train.pack=True"},
    {"shorter-pack", pytorch_script, text, "pack rows to {seq} tokens"},
    {"length-buckets", hf_trainer, keys, "train_sampling_strategy=group_by_length"},
    {"length-buckets", axolotl, keys, "group_by_length=True"},
    {"length-buckets", oumi, missing, "not in Oumi: data.train.pack: true makes all rows alike"},
    {"length-buckets", torchtune, missing, "not in torchtune: dataset.packed: True makes all rows alike"},
    {"length-buckets", litgpt, missing, "not in LitGPT: sort the data by length, longest first"},
    {"length-buckets", pytorch_script, text, "a sampler that groups rows of like length, longest batch first"},
    {"sequence-chunks", pytorch_script, text,
     "from deepspeed.runtime.sequence_parallel.ulysses_sp import TiledMLP, TiledFusedLogitsLoss"},
    {"eval-batch", hf_trainer, keys, "per_device_eval_batch_size={eval}"},
    {"eval-batch", axolotl, keys, "eval_batch_size={eval}"},
    {"eval-batch", oumi, keys, "training.per_device_eval_batch_size={eval}"},
    {"eval-batch", litgpt, missing, "LitGPT evaluates with train.micro_batch_size: lower that, or eval.max_iters"},
    {"eval-batch", torchtune, keys, "batch_size_val={eval}"},
    {"eval-batch", pytorch_script, text, "DataLoader(..., batch_size={eval}) for evaluation"},
    {"eval-accumulation", hf_trainer, keys, "eval_accumulation_steps={steps}"},
    {"eval-accumulation", axolotl, missing,
     "axolotl sets it to gradient_accumulation_steps: a smaller eval_batch_size"},
    {"eval-accumulation", oumi, missing, "not in Oumi: a smaller training.per_device_eval_batch_size"},
    {"eval-accumulation", pytorch_script, text, "outputs.append(logits.argmax(-1).cpu()) instead of keeping logits"},
    {"no-grad", hf_trainer, text, "with torch.no_grad(): around your own evaluation code (Trainer's has it)"},
    {"no-grad", pytorch_script, text, "with torch.inference_mode(): around evaluation and generation"},
};

}  // namespace

std::span<const OptionLine> batch_options() { return kLines; }

}  // namespace headroom::doctor
