// torchtune's YAML: components by dotted name, interpolation with ${...} (resolved by the reader).
#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

struct Builder {
  std::string_view suffix, model;
};

// torchtune.models.<family>.<builder>: what the last words of a builder's name stand for, by family.
constexpr Builder kModels[] = {
    {"llama2.llama2_7b", "meta-llama/Llama-2-7b-hf"},
    {"llama2.llama2_13b", "meta-llama/Llama-2-13b-hf"},
    {"llama2.llama2_70b", "meta-llama/Llama-2-70b-hf"},
    {"llama3.llama3_8b", "meta-llama/Meta-Llama-3-8B-Instruct"},
    {"llama3.llama3_70b", "meta-llama/Meta-Llama-3-70B-Instruct"},
    {"llama3_1.llama3_1_8b", "meta-llama/Meta-Llama-3.1-8B-Instruct"},
    {"llama3_1.llama3_1_70b", "meta-llama/Meta-Llama-3.1-70B-Instruct"},
    {"llama3_1.llama3_1_405b", "meta-llama/Meta-Llama-3.1-405B-Instruct"},
    {"llama3_2.llama3_2_1b", "meta-llama/Llama-3.2-1B-Instruct"},
    {"llama3_2.llama3_2_3b", "meta-llama/Llama-3.2-3B-Instruct"},
    {"llama3_3.llama3_3_70b", "meta-llama/Llama-3.3-70B-Instruct"},
    {"code_llama2.code_llama2_7b", "codellama/CodeLlama-7b-hf"},
    {"gemma.gemma_2b", "google/gemma-2b"},
    {"gemma.gemma_7b", "google/gemma-7b"},
    {"gemma2.gemma2_2b", "google/gemma-2-2b"},
    {"gemma2.gemma2_9b", "google/gemma-2-9b"},
    {"gemma2.gemma2_27b", "google/gemma-2-27b"},
    {"mistral.mistral_7b", "mistralai/Mistral-7B-v0.1"},
    {"mistral.mistral_reward_7b", "mistralai/Mistral-7B-v0.1"},
    {"phi3.phi3_mini", "microsoft/Phi-3-mini-4k-instruct"},
    {"phi4.phi4_14b", "microsoft/phi-4"},
    {"qwen2.qwen2_0_5b", "Qwen/Qwen2-0.5B-Instruct"},
    {"qwen2.qwen2_1_5b", "Qwen/Qwen2-1.5B-Instruct"},
    {"qwen2.qwen2_7b", "Qwen/Qwen2-7B-Instruct"},
    {"qwen2_5.qwen2_5_0_5b", "Qwen/Qwen2.5-0.5B-Instruct"},
    {"qwen2_5.qwen2_5_1_5b_base", "Qwen/Qwen2.5-1.5B"},
    {"qwen2_5.qwen2_5_1_5b_instruct", "Qwen/Qwen2.5-1.5B-Instruct"},
    {"qwen2_5.qwen2_5_3b", "Qwen/Qwen2.5-3B-Instruct"},
    {"qwen2_5.qwen2_5_7b_base", "Qwen/Qwen2.5-7B"},
    {"qwen2_5.qwen2_5_7b_instruct", "Qwen/Qwen2.5-7B-Instruct"},
    {"qwen2_5.qwen2_5_14b_base", "Qwen/Qwen2.5-14B"},
    {"qwen2_5.qwen2_5_14b_instruct", "Qwen/Qwen2.5-14B-Instruct"},
    {"qwen2_5.qwen2_5_32b_base", "Qwen/Qwen2.5-32B"},
    {"qwen2_5.qwen2_5_32b_instruct", "Qwen/Qwen2.5-32B-Instruct"},
    {"qwen2_5.qwen2_5_72b_instruct", "Qwen/Qwen2.5-72B-Instruct"},
    {"qwen3.qwen3_0_6b_instruct", "Qwen/Qwen3-0.6B"},
    {"qwen3.qwen3_1_7b_instruct", "Qwen/Qwen3-1.7B"},
    {"qwen3.qwen3_4b_instruct", "Qwen/Qwen3-4B"},
    {"qwen3.qwen3_8b_instruct", "Qwen/Qwen3-8B"},
    {"qwen3.qwen3_14b_instruct", "Qwen/Qwen3-14B"},
    {"qwen3.qwen3_32b", "Qwen/Qwen3-32B"},
};

// "torchtune.models.llama3_1.qlora_llama3_1_8b" -> "llama3_1.llama3_1_8b" and its prefix.
std::pair<std::string, std::string> split_builder(std::string_view component) {
  const size_t last = component.rfind('.');
  if (last == std::string_view::npos) return {std::string(component), ""};
  const size_t family = component.rfind('.', last - 1);
  std::string name(component.substr(last + 1));
  std::string prefix;
  for (std::string_view word : {"qlora_", "lora_", "dora_"})
    if (name.starts_with(word)) {
      prefix = word.substr(0, word.size() - 1);
      name = name.substr(word.size());
      break;
    }
  const size_t start = family == std::string_view::npos ? 0 : family + 1;
  return {std::string(component.substr(start, last - start)) + "." + name, prefix};
}

std::string model_of(std::string_view component) {
  const auto [builder, prefix] = split_builder(component);
  for (const Builder& known : kModels)
    if (known.suffix == builder) return std::string(known.model);
  for (const Builder& known : kModels)  // llama3_2_vision_11b and other variants keep their name
    if (builder == std::string(known.suffix) + "_instruct") return std::string(known.model);
  return builder.substr(builder.find('.') + 1);
}

std::string_view set_component(Draft& draft, const Setting& setting, const KeyRule& rule) {
  const std::string prefix = split_builder(setting.text).second;
  draft.facts["tune.kind"] = setting;
  draft.facts["tune.kind"].text = prefix;
  Setting named = setting;
  named.text = model_of(setting.text);
  return set_model(draft, named, rule);
}

std::string_view add_component(Draft& draft, const Setting& setting, const KeyRule& rule) {
  Setting named = setting;
  named.text = model_of(setting.text);
  return add_further_model(draft, named, rule);
}

// LinearCrossEntropyLoss and CEWithChunkedOutputLoss never hold all logits in float32 at once.
std::string_view set_loss(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::string name = setting.text.substr(setting.text.rfind('.') + 1);
  draft.set_extra("loss", name, setting.origin);
  const bool chunked = name == "LinearCrossEntropyLoss" || name.find("Chunked") != std::string::npos;
  draft.set(draft.job.compute.chunked_loss, chunked, "chunked_loss", setting.origin);
  if (name.find("DPO") != std::string::npos)
    draft.set(draft.job.objective, std::string("dpo"), "objective", setting.origin);
  if (name.find("PPO") != std::string::npos)
    draft.set(draft.job.objective, std::string("ppo"), "objective", setting.origin);
  return {};
}

std::string_view set_checkpoint_folder(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.set_extra("checkpoint_dir", setting.text, setting.origin);
  return {};
}

std::string_view set_kd(Draft& draft, const Setting& setting, const KeyRule& rule) {
  draft.set(draft.job.objective, std::string("distil"), "objective", setting.origin);
  return set_extra(draft, setting, rule);
}

std::string_view note_reference(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.facts["tune.reference"] = setting;
  return {};
}

// -1: all devices that the other dimensions leave
std::string_view set_shards(Draft& draft, const Setting& setting, const KeyRule& rule) {
  return setting.text == "-1" ? std::string_view() : set_buffer(draft, setting, rule);
}

constexpr KeyRule kRules[] = {
    {"model._component_", set_component, "model"},
    {"policy_model._component_", set_component, "model"},
    {"teacher_model._component_", add_component, "further_models"},
    {"reward_and_value_model._component_", add_component, "further_models"},
    {"model.lora_rank", set_lora_rank, "lora"},
    {"model.lora_alpha", set_lora_alpha, "lora"},
    {"model.lora_dropout", set_lora_dropout, "lora"},
    {"model.lora_attn_modules", remember, "tune.attention"},
    {"model.apply_lora_to_mlp", remember, "tune.mlp"},
    {"model.apply_lora_to_output", remember, "tune.output"},
    {"model.use_dora", set_lora_dora, "lora"},
    {"model.quantize_base", remember, "tune.quantize"},
    {"model.*", set_extra, "extras.model_options"},
    {"tokenizer.max_seq_len", set_count, "sequence"},
    {"batch_size", set_count, "micro_batch"},
    {"batch_size_val", set_count, "eval_batch"},
    {"gradient_accumulation_steps", set_count, "accumulation"},
    {"dataset.packed", set_truth, "packing"},
    {"dataset_val.packed", set_extra, "extras.eval_packing"},
    {"optimizer._component_", set_optimizer, "optimizer"},
    {"optimizer_in_bwd", set_truth, "optimizer_in_backward"},
    {"loss._component_", set_loss, "chunked_loss"},
    {"loss.num_output_chunks", set_extra, "extras.loss_chunks"},
    {"kd_loss._component_", set_kd, "extras.kd_loss"},
    {"clip_grad_norm", set_real, "max_grad_norm"},
    {"compile", set_truth, "compile"},
    {"compile.*", set_extra, "extras.compile_parts"},
    {"dtype", set_dtype, "weight_dtype"},
    {"enable_activation_checkpointing", set_truth, "checkpointing"},
    {"enable_activation_offloading", set_truth, "activation_offload"},
    {"activation_offloading_use_streams", set_extra, "extras.offload_streams"},
    {"ac_mode", set_extra, "extras.checkpointing_mode"},
    {"ac_option", set_extra, "extras.checkpointing_option"},
    {"fsdp_cpu_offload", remember, "fsdp.offload"},
    {"fsdp.cpu_offload", remember, "fsdp.offload"},
    {"ppo_batch_size", set_extra, "extras.ppo_batch"},
    {"fsdp_reshard_after_forward", remember, "fsdp.reshard"},
    {"custom_sharded_layers", set_extra, "extras.sharded_layers"},
    {"tensor_parallel_dim", set_count, "tensor_parallel"},
    {"data_parallel_shard_dim", set_shards, "buffers.dp_shard"},
    {"data_parallel_replicate_dim", set_buffer, "buffers.dp_replicate"},
    {"context_parallel_dim", set_count, "context_parallel"},
    {"enable_fp8_training", set_extra, "extras.fp8_training"},
    {"quantizer._component_", set_extra, "extras.qat"},
    {"quantizer.groupsize", set_extra, "extras.qat_group"},
    {"fake_quant_after_n_steps", set_extra, "extras.qat_after"},
    {"low_cpu_ram", set_extra, "extras.low_cpu_ram"},
    {"memory_efficient_fsdp_wrap", set_extra, "extras.fsdp_wrap"},
    {"checkpointer.checkpoint_dir", set_checkpoint_folder, "extras.checkpoint_dir"},
    {"ref_checkpointer.checkpoint_dir", note_reference, "further_models"},
    {"run_val_every_n_steps", set_extra, "extras.eval_interval"},
    {"device", set_extra, "extras.device"},
    {"enable_async_checkpointing", set_extra, "extras.async_checkpoint"},
    {"forward_batch_size", set_extra, "extras.ppo_forward_batch"},
    {"grpo_samples", set_extra, "extras.generations"},
    {"max_generated_tokens", set_count, "max_new_tokens"},
    {"num_steps", set_extra, "extras.steps"},
    {"dataloader.num_workers", set_whole, "dataloader_workers"},
    {"nproc_per_node", set_gpus, "gpus"},
    {"nnodes", set_count, "nodes"},
    {"recipe", set_extra, "extras.recipe"},
    {"enable_kv_cache", set_extra, "extras.use_cache"},
    {"max_new_tokens", set_count, "max_new_tokens"},
};

constexpr Irrelevant kIrrelevant[] = {
    {"names and kinds of the checkpoint's files; they are read one by one",
     "checkpointer.* ref_checkpointer.* teacher_checkpointer.* value_checkpointer.* policy_checkpointer.* "
     "reward_checkpointer.* ref_policy_checkpointer.* base_model_path name resume_from_checkpoint "
     "save_adapter_weights_only output_dir should_load_recipe_state"},
    {"choice and preparation of the data; read as a stream",
     "dataset.* datasets* dataset_val.* shuffle collate_fn tokenizer.* seed"},
    {"the arithmetic of the optimizer and the loss, not their storage",
     "optimizer.* lr_scheduler.* loss.* kd_ratio kd_loss.* ppo_epochs gamma lmbda kl_coeff whiten_rewards "
     "penalise_no_eos reward_penalty min_response_length "
     "stop_token_ids reward_functions* reward_and_value_model.* save_every_n_* use_distributed_state_dict training.* "
     "epochs max_steps_per_epoch label_smoothing"},
    {"logging and reports",
     "metric_logger.* log_every_n_steps log_peak_memory_stats log_level profiler.* profile_memory log_*"},
    {"how processes talk", "tensor_parallel_plan.* cudnn_deterministic_mode cudnn_deterministic cluster.* nccl_*"},
    {"an evaluation or a quantisation of finished models", "tasks limit quantizer"},
    {"sampling", "temperature top_k prompt.* quantization_method.*"},
};

constexpr Renamed kRenamed[] = {
    {"max_seq_len", "tokenizer.max_seq_len", "torchtune 0.3: on the tokenizer"},
    {"dataset.max_seq_len", "tokenizer.max_seq_len", "torchtune 0.3: on the tokenizer"},
    {"max_seq_length", "tokenizer.max_seq_len", "torchtune's name is tokenizer.max_seq_len"},
    {"enable_fsdp_cpu_offload", "fsdp_cpu_offload", "torchtune's name is fsdp_cpu_offload"},
    {"model.dtype", "dtype", "torchtune takes dtype at the top"},
};

void finish_lora_modules(Draft& draft) {
  finish_lora(draft, {8, 16, 0});
  LoraSettings& lora = draft.lora();
  if (const Setting* modules = draft.fact("tune.attention")) {
    for (const std::string& module : modules->items)
      lora.targets.push_back(module == "output_proj" ? std::string("o_proj") : module);
  } else {
    lora.targets = {"q_proj", "v_proj"};
  }
  if (draft.fact_truth("tune.mlp").value_or(false))
    for (const char* module : {"gate_proj", "up_proj", "down_proj"}) lora.targets.emplace_back(module);
  if (draft.fact_truth("tune.output").value_or(false)) lora.targets.emplace_back("lm_head");
}

void finish(Draft& draft) {
  Job& job = draft.job;
  const std::string kind = draft.fact_text("tune.kind");
  if (kind == "lora" || kind == "qlora" || kind == "dora" || draft.fact("lora.r")) finish_lora_modules(draft);
  if (kind == "qlora" || draft.fact_truth("tune.quantize").value_or(false)) {
    const Setting* witness = draft.fact("tune.quantize") ? draft.fact("tune.quantize") : draft.fact("tune.kind");
    draft.set(job.precision.quantization, std::string("nf4"), "quantization", witness->origin);
  }
  if (draft.fact("tune.reference") && !job.model.empty()) {
    job.further_models.push_back(job.model);
    job.keys.origins["further_models"] = draft.fact("tune.reference")->origin;
  }
  const bool distributed = draft.extras["recipe"].find("distributed") != std::string::npos ||
                           job.devices.gpus.value_or(1) > 1 || draft.fact("fsdp.offload");
  if (distributed) {
    Setting on;
    on.text = "true";
    on.origin = job.keys.origins.count("gpus") ? job.keys.origins["gpus"] : job.keys.origins["extras.recipe"];
    draft.facts.emplace("fsdp.on", on);
    finish_fsdp(draft);
  }
}

constexpr Dialect kDialect = {System::torchtune, "torchtune", kRules, kIrrelevant, kRenamed, {}, nullptr, finish};

}  // namespace

const Dialect& torchtune_dialect() { return kDialect; }

}  // namespace headroom::doctor
