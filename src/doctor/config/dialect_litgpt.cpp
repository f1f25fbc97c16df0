// LitGPT: `litgpt finetune_lora`, finetune_full, pretrain ... with their YAML files, and the constants at the top of
// the scripts that preceded the command line (until early 2024).
#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

// "bf16-true", "16-mixed", "32-true", "bf16", "16"
std::string_view set_precision(Draft& draft, const Setting& setting, const KeyRule&) {
  std::string word = lower(setting.text);
  const size_t dash = word.rfind('-');
  const std::string kind = dash == std::string::npos ? "mixed" : word.substr(dash + 1);
  if (dash != std::string::npos) word.resize(dash);
  const std::optional<std::string> dtype = canonical_dtype(word);
  if (!dtype || (kind != "true" && kind != "mixed")) return "no precision of Lightning";
  const bool single = *dtype == "float32";
  draft.set(draft.job.precision.weights, kind == "true" ? *dtype : std::string("float32"), "weight_dtype",
            setting.origin);
  draft.set(draft.job.precision.autocast, kind == "true" || single ? std::string("none") : *dtype, "autocast",
            setting.origin);
  return {};
}

// "bnb.nf4-dq", "bnb.int8-training", "gptq.int4"
std::string_view set_quantize(Draft& draft, const Setting& setting, const KeyRule&) {
  std::string word = lower(setting.text);
  if (word.starts_with("bnb.")) word = word.substr(4);
  if (word == "int8-training") word = "int8";
  draft.set(draft.job.precision.quantization, word, "quantization", setting.origin);
  return {};
}

// checkpoints/tiiuae/falcon-7b holds tiiuae/falcon-7b.
std::string_view set_checkpoint(Draft& draft, const Setting& setting, const KeyRule& rule) {
  Setting named = setting;
  const size_t folder = named.text.find("checkpoints/");
  if (folder != std::string::npos) named.text = named.text.substr(folder + 12);
  while (named.text.size() > 1 && named.text.back() == '/') named.text.pop_back();
  return set_model(draft, named, rule);
}

std::string_view set_strategy(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::string word = lower(setting.text);
  if (word.find("fsdp") != std::string::npos) draft.facts["fsdp.on"] = setting;
  if (word == "ddp" || word == "ddp_spawn")
    draft.set(draft.job.parallel.sharding, Sharding::ddp, "sharding", setting.origin);
  if (word.starts_with("deepspeed")) {
    draft.set(draft.job.parallel.sharding, zero_stage(word.substr(word.rfind('_') + 1)).value_or(Sharding::zero2),
              "sharding", setting.origin);
  }
  return {};
}

constexpr KeyRule kRules[] = {
    {"checkpoint_dir", set_checkpoint, "model"},
    {"model_name", set_model, "model"},
    {"initial_checkpoint_dir", set_extra, "extras.initial_checkpoint"},
    {"precision", set_precision, "autocast"},
    {"quantize", set_quantize, "quantization"},
    {"devices", set_gpus, "gpus"},
    {"num_nodes", set_count, "nodes"},
    {"lora_r", set_lora_rank, "lora"},
    {"lora_alpha", set_lora_alpha, "lora"},
    {"lora_dropout", set_lora_dropout, "lora"},
    {"lora_query", remember, "litgpt.query"},
    {"lora_key", remember, "litgpt.key"},
    {"lora_value", remember, "litgpt.value"},
    {"lora_projection", remember, "litgpt.projection"},
    {"lora_mlp", remember, "litgpt.mlp"},
    {"lora_head", remember, "litgpt.head"},
    {"train.global_batch_size", set_count, "global_batch"},
    {"train.micro_batch_size", set_count, "micro_batch"},
    {"train.max_seq_length", set_count, "sequence"},
    {"train.max_norm", set_real, "max_grad_norm"},
    {"train.tie_embeddings", set_extra, "extras.tie_embeddings"},
    {"eval.max_new_tokens", set_extra, "extras.eval_new_tokens"},
    {"eval.interval", set_extra, "extras.eval_interval"},
    {"optimizer", set_optimizer, "optimizer"},
    {"optimizer.class_path", set_optimizer, "optimizer"},
    {"data.init_args.num_workers", set_whole, "dataloader_workers"},
    {"data.num_workers", set_whole, "dataloader_workers"},
    {"model_config.n_layer", set_architecture, "architecture.layers"},
    {"model_config.n_embd", set_architecture, "architecture.hidden"},
    {"model_config.n_head", set_architecture, "architecture.heads"},
    {"model_config.n_query_groups", set_architecture, "architecture.kv_heads"},
    {"model_config.intermediate_size", set_architecture, "architecture.intermediate"},
    {"model_config.vocab_size", set_architecture, "architecture.vocab"},
    {"model_config.padded_vocab_size", set_architecture, "architecture.vocab"},
    {"model_config.block_size", set_architecture, "architecture.max_positions"},
    {"model_config.name", set_model, "model"},
    {"model_config", set_extra, "extras.model_config"},
    {"strategy", set_strategy, "sharding"},
    {"cpu_offload", remember, "fsdp.offload"},
    {"max_new_tokens", set_count, "max_new_tokens"},
};

constexpr Irrelevant kIrrelevant[] = {
    {"names, paths and reports",
     "out_dir logger_name log.* tokenizer_dir access_token resume config teacher_checkpoint_dir"},
    {"choice and preparation of the data; read as a stream", "data data.*"},
    {"how long, how often and how fast it trains",
     "seed train.save_interval train.log_interval train.lr_warmup_steps train.lr_warmup_fraction train.epochs "
     "train.max_tokens train.max_steps train.max_time train.min_lr eval.max_iters eval.initial_validation "
     "eval.final_validation eval.evaluate_example"},
    {"the arithmetic of the optimizer, not its states", "optimizer.*"},
    {"sampling", "temperature top_k top_p num_samples prompt"},
    {"the model's structure where the figures above hold it", "model_config.*"},
    {"variables of the scripts that time or name things",
     "learning_rate weight_decay warmup_steps max_iters eval_interval save_interval eval_iters eval_max_new_tokens "
     "log_interval beta1 beta2 decay_lr min_lr data_dir warmup_iters lr_warmup_steps hparams epoch_size num_epochs "
     "name "
     "max_step io eval_step save_step save_step_interval eval_step_interval log_step_interval warmup_iters"},
};

constexpr Renamed kRenamed[] = {
    {"micro_batch_size", "train.micro_batch_size", "LitGPT's command line of 2024; before, a variable in the script"},
    {"override_max_seq_length", "train.max_seq_length",
     "LitGPT's command line of 2024; before, a variable in the script"},
    {"max_seq_length", "train.max_seq_length", "LitGPT's command line of 2024; before, a variable in the script"},
    {"batch_size", "train.global_batch_size",
     "LitGPT's command line of 2024: per device then, over all devices now (batch_size * devices)"},
    {"global_batch_size", "train.global_batch_size", "LitGPT's command line of 2024; before, a variable in the script"},
    {"grad_clip", "train.max_norm", "LitGPT's command line of 2024; before, a variable in the script"},
    {"train.epoch_size", "train.epochs", "LitGPT 0.4"},
    {"lora_to_query", "lora_query", "early lit-gpt"},
    {"max_norm", "train.max_norm", "LitGPT's command line takes it below train"},
};

bool lora_part(const Draft& draft, const char* name, bool otherwise) {
  return draft.fact_truth(std::string("litgpt.") + name).value_or(otherwise);
}

// LitGPT's attention weights are one matrix: query, key and value are slices of it.
void finish_targets(Draft& draft) {
  finish_lora(draft, {8, 16, 0.05});
  LoraSettings& lora = draft.lora();
  const std::pair<const char*, const char*> kParts[] = {
      {"query", "q_proj"}, {"key", "k_proj"}, {"value", "v_proj"}, {"projection", "o_proj"}};
  for (const auto& [name, module] : kParts)
    if (lora_part(draft, name, name == std::string("query") || name == std::string("value")))
      lora.targets.emplace_back(module);
  if (lora_part(draft, "mlp", false))
    for (const char* module : {"gate_proj", "up_proj", "down_proj"}) lora.targets.emplace_back(module);
  if (lora_part(draft, "head", false)) lora.targets.emplace_back("lm_head");
}

void finish(Draft& draft) {
  Job& job = draft.job;
  // The scripts of 2023, which are run by path, take 4 rows at a time.
  if (!draft.fact_text("litgpt.script").empty() && !job.batch.micro) job.batch.micro = 4;
  if (draft.fact("lora.r") || draft.fact_text("litgpt.command").find("lora") != std::string::npos)
    finish_targets(draft);
  // Several devices use Fabric's FSDP. finetune_full shards fully and checkpoints every block. The others use
  // HYBRID_SHARD, which is full sharding within one node, and checkpoint nothing (litgpt/finetune/{full,lora}.py).
  if (job.devices.gpus.value_or(1) * job.devices.nodes.value_or(1) > 1 &&
      draft.fact_text("litgpt.command") != "generate") {
    const Origin origin = job.keys.origins.count("gpus") ? job.keys.origins["gpus"] : job.keys.origins["nodes"];
    const bool full = !job.lora && job.keys.origins["model"].key.find("checkpoint_dir") != std::string::npos;
    draft.imply(job.parallel.sharding, full || job.devices.nodes.value_or(1) == 1 ? Sharding::zero3 : Sharding::hybrid,
                "sharding", origin);
    if (full) draft.imply(job.compute.checkpointing, true, "checkpointing", origin);
  }
  finish_fsdp(draft);
}

constexpr Dialect kDialect = {System::litgpt, "LitGPT", kRules, kIrrelevant, kRenamed, {}, nullptr, finish};

}  // namespace

const Dialect& litgpt_dialect() { return kDialect; }

}  // namespace headroom::doctor
