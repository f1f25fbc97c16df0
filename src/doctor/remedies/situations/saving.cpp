// Memory that runs out while a model is saved.
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum Sign::In;

bool deepspeed_on_host(const CaseView& view) {
  return on_host(view) && (view.zero() || !view.setup_says("zero_stage|deepspeed").empty());
}
Evidence told_saving(const CaseView& view) { return told_at(view, ToldStage::saving); }
bool saving(const CaseView& view) {
  return view.pool() == Pool::device && (view.phase("checkpoint_save") || told_saving(view).weight > 0);
}
// Unsloth's calls that merge the adapter on the device before they write, and then convert.
constexpr std::string_view kMergedSaves =
    "save_pretrained_gguf|save_pretrained_merged|push_to_hub_gguf|push_to_hub_merged";
bool merging_by_unsloth(const CaseView& view) { return on_device(view) && !view.serving(); }
// By one process: nothing is gathered.
bool saving_whole(const CaseView& view) {
  if (!view.log_says(kMergedSaves).empty()) return false;
  constexpr std::string_view kDivides = "fsdp|deepspeed|zero3|zero-3|zero 3|stage 3|stage3|megatron";
  return saving(view) && !view.says(kDivides);
}
bool saving_by_several(const CaseView& view) {
  return saving(view) && !saving_whole(view) && view.log_says(kMergedSaves).empty();
}
bool saving_under_deepspeed(const CaseView& view) {
  return saving_by_several(view) && !view.log_says("zero3|zero-3|zero 3|stage 3|stage3").empty();
}
Evidence told_saving_under_deepspeed(const CaseView& view) {
  Evidence told = told_saving(view);
  if (told.weight > 0) told.weight += 0.02;
  return told;
}
// A merge for a save gathers nothing (host_jobs.cpp).
bool saved_on_the_host(const CaseView& view) {
  return host_ran_out(view) &&
         view.log_says("unsloth|merging weights|merge_and_unload|save_pretrained_merged|push_to_hub_merged").empty();
}
Evidence told_saving_on_the_host(const CaseView& view) {
  const std::string_view word = view.story().at(ToldStage::saving);
  if (word.empty()) return {};
  return {0.86, "`" + std::string(word) + "`, where the log says that it failed"};
}

constexpr Situation kSituations[] = {
    {"merged_while_it_is_saved",
     "this call merges the adapter into the base in 16 bits first, on the device as far as it is allowed to",
     merging_by_unsloth,
     {{either, 0.95, kMergedSaves}},
     {{"sharded-save",
       "maximum_memory_usage=0.5 in this call (0.75 to 0.9 unless stated): less of the device for what is merged, the "
       "rest goes to host memory and then to the disk",
       {},
       System::unknown,
       "maximum_memory_usage"},
      {"save-adapter",
       "the adapter alone: model.save_pretrained(folder); merged later on the CPU (merge_and_unload()), then "
       "llama.cpp's convert_hf_to_gguf.py and llama-quantize"},
      {"empty-cache", "del trainer; torch.cuda.empty_cache() before it, or a new process that only loads and saves"}}},
    {"full_state_dict",
     "saving gathers every shard into one full state dict on the GPU, beside what training holds there",
     on_device,
     {{log, 0.92, "failed to clone() tensor|_full_post_state_dict_hook|_full_pre_state_dict_hook|full_state_dict_hook"},
      {log, 0.85, "summon_full_params|_unshard_fsdp_state|_unflatten_params|fullstatedictconfig|save_fsdp_model"}},
     {{"sharded-save",
       "FullStateDictConfig(offload_to_cpu=True, rank0_only=True) around model.state_dict(), or "
       "state_dict_type: SHARDED_STATE_DICT"}}},
    {"state_dict_of_8bit_weights",
     "the state dict of 8-bit weights undoes their layout on the GPU: a second copy of the base model",
     on_device,
     {{log, 0.9, "undo_layout"}, {log, 0.8, "linear8bitlt|_save_to_state_dict"}},
     {{"save-adapter",
       "model.save_pretrained(folder) of the PEFT model without its own state_dict; bitsandbytes 0.37.2 or >= 0.39"}}},
    {"adapters_of_an_8bit_model_saved",
     "bitsandbytes 0.38 makes a second copy of 8-bit weights on the GPU while they are saved",
     saving_whole,
     {{either, 0.92, "alpaca-lora|alpaca_lora|load_in_8bit|load in 8bit|load in 8-bit|in 8bit|in 8-bit|in 8 bit|int8"}},
     {{"other-version",
       "pip install bitsandbytes==0.37.2 (or >= 0.39): 0.38 undoes the layout of all weights at a save"},
      {"save-adapter", "of LoRA the adapter alone: model.save_pretrained(folder) without a state_dict of its own"},
      {"empty-cache", "torch.cuda.empty_cache() before saving"}}},
    {"saved_by_transformers",
     "the whole state dict is made for the file; of 8-bit weights bitsandbytes 0.38 makes a second copy for it",
     saving_whole,
     {{log, 0.81, "save_pretrained|peft|lora"}},
     {{"save-adapter",
       "less of it: save_only_model=True (without the optimizer's states); of LoRA the adapter alone, with 8-bit "
       "weights by bitsandbytes==0.37.2"}}},
    {"gathered_weights_at_save",
     "ZeRO-3 gathers all 16-bit weights on one process to save them",
     on_device,
     {{log, 0.9, "_zero3_consolidated_16bit_state_dict"}},
     {{"sharded-save", "\"stage3_gather_16bit_weights_on_model_save\": false, then zero_to_fp32.py"}}},
    {"saved_by_one_process",
     "the steps fit, and saving copies the state on the GPU before it reaches the file",
     saving_whole,
     {{log, 0.8, "state_dict|torch.save|save_pretrained|save_model|save_checkpoint"}},
     {{"sharded-save",
       "to the host first: torch.save({k: v.cpu() for k, v in model.state_dict().items()}, file); at the end "
       "model.cpu(), then save"},
      {"empty-cache", "torch.cuda.empty_cache() before saving, at the end after del optimizer, trainer"},
      {"save-adapter", "less of it: save_only_model=True (without the optimizer's states); of LoRA the adapter alone"}},
     told_saving},
    {"saved_under_deepspeed",
     "the steps fit, and ZeRO-3 gathers all weights in 16 bits for the file",
     saving_under_deepspeed,
     {},
     {{"sharded-save", "\"stage3_gather_16bit_weights_on_model_save\": false, then zero_to_fp32.py on the CPU"},
      {"empty-cache", "torch.cuda.empty_cache() before saving"},
      {"save-adapter", "of LoRA the adapter alone"}},
     told_saving_under_deepspeed},
    {"saving_on_the_device",
     "saving copies the state on the GPU before it reaches the file",
     saving_by_several,
     {{log, 0.8, "state_dict|torch.save|save_pretrained|save_model|save_checkpoint"}},
     {{"sharded-save",
       "FSDP: state_dict_type SHARDED_STATE_DICT, or FullStateDictConfig(offload_to_cpu=True, rank0_only=True); "
       "ZeRO-3: \"stage3_gather_16bit_weights_on_model_save\": false; else {k: v.cpu() for k, v in "
       "model.state_dict().items()}"},
      {"empty-cache", "torch.cuda.empty_cache() before saving"},
      {"save-adapter", "less of it: save_only_model=True (without the optimizer's states); of LoRA the adapter alone"}},
     told_saving},
    {"saved_in_host_memory",
     "what is saved is gathered whole in host memory first, on one process or on each",
     saved_on_the_host,
     {{log, 0.86,
       "保存模型|保存权重|保存ckpt|保存检查点|while saving|when saving|during saving|at the save|saving the model|"
       "saving checkpoint|save_checkpoint|モデルを保存|モデルの保存"}},
     {{"shard",
       "ZeRO stage 3 (ms-swift: --deepspeed zero3) or FSDP: each process keeps and writes its own part",
       {},
       System::unknown,
       "zero3|stage 3|stage3|full_shard"},
      {"sharded-save",
       "\"stage3_gather_16bit_weights_on_model_save\": false; state_dict_type: SHARDED_STATE_DICT (FSDP); the weights "
       "alone: save_only_model=True"},
      {"host-memory"}},
     told_saving_on_the_host},
    {"whole_model_per_process",
     "zero3_init_flag and the gathered save keep whole copies of the weights in host memory beside the offload",
     deepspeed_on_host,
     {{setup, 0.85, "zero3_init_flag: true|'zero3_init_flag': true|\"zero3_init_flag\": true"}},
     {{"plain-init", "zero3_init_flag: false"},
      {"sharded-save",
       "zero3_save_16bit_model: false (stage3_gather_16bit_weights_on_model_save), then zero_to_fp32.py"},
      {"host-memory"}}},
};

}  // namespace

std::span<const Situation> saving_situations() { return kSituations; }

}  // namespace headroom::doctor
