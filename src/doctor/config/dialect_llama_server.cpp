// llama.cpp: llama-server, llama-cli and their environment variables (LLAMA_ARG_*).
#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

// A number of layers, "all" or "auto"
std::string_view set_layers(Draft& draft, const Setting& setting, const KeyRule& rule) {
  const std::string word = lower(setting.text);
  if (word == "auto" || word == "-1") return {};
  if (word == "all") {
    draft.set(draft.job.serving.gpu_layers, int64_t{999}, "gpu_layers", setting.origin);
    return {};
  }
  return set_whole(draft, setting, rule);
}

// on, off, auto; before 2025 a bare flag
std::string_view set_flash(Draft& draft, const Setting& setting, const KeyRule&) {
  if (lower(setting.text) == "auto") return {};
  const std::optional<bool> on = truth(setting);
  if (!on) return "none of on, off and auto";
  draft.set(draft.job.compute.attention, std::string(*on ? "flash_attention" : "eager"), "attention", setting.origin);
  return {};
}

// 0: the model's own length.
std::string_view set_context(Draft& draft, const Setting& setting, const KeyRule& rule) {
  if (setting.text == "0") return {};
  return set_count(draft, setting, rule);
}

std::string_view set_parallel(Draft& draft, const Setting& setting, const KeyRule& rule) {
  if (setting.text == "-1") return {};
  return set_count(draft, setting, rule);
}

std::string_view set_kv(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.set(draft.job.serving.kv_dtype, lower(setting.text), "kv_dtype", setting.origin);
  return {};
}

std::string_view set_split(Draft& draft, const Setting& setting, const KeyRule& rule) {
  int64_t devices = 0;
  const std::vector<std::string> shares = setting.is_list ? setting.items : split_words(setting.text, ",/");
  for (const std::string& share : shares) devices += real_number(share).value_or(0) > 0;
  if (devices < 1) return "not a list of shares";
  draft.set(draft.job.devices.gpus, devices, "gpus", setting.origin);
  return set_extra(draft, setting, rule);
}

std::string_view no_offload(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.set_extra("kv_on_host", "true", setting.origin);
  return {};
}

constexpr KeyRule kRules[] = {
    {"model", set_model, "model"},
    {"hf_repo", set_model, "model"},
    {"model_url", set_model, "model"},
    {"docker_repo", set_model, "model"},
    {"hf_file", set_extra, "extras.model_file"},
    {"ctx_size", set_context, "max_model_len"},
    {"batch_size", set_extra, "extras.logical_batch"},
    {"ubatch_size", set_count, "max_batched_tokens"},
    {"parallel", set_parallel, "max_sequences"},
    {"n_gpu_layers", set_layers, "gpu_layers"},
    {"flash_attn", set_flash, "attention"},
    {"cache_type_k", set_kv, "kv_dtype"},
    {"cache_type_v", set_extra, "extras.kv_dtype_v"},
    {"no_kv_offload", no_offload, "extras.kv_on_host"},
    {"kv_unified", set_extra, "extras.kv_unified"},
    {"swa_full", set_extra, "extras.swa_full"},
    {"tensor_split", set_split, "extras.tensor_split"},
    {"split_mode", set_extra, "extras.split_mode"},
    {"main_gpu", set_extra, "extras.main_gpu"},
    {"override_tensor", set_extra, "extras.override_tensor"},
    {"cpu_moe", set_extra, "extras.cpu_moe"},
    {"n_cpu_moe", set_extra, "extras.cpu_moe_layers"},
    {"n_cpu_ffn", set_extra, "extras.cpu_ffn_layers"},
    {"moe_cache_mib", set_extra, "extras.moe_cache_mib"},
    {"mmproj", add_further_model, "further_models"},
    {"mmproj_url", add_further_model, "further_models"},
    {"no_mmproj_offload", set_extra, "extras.mmproj_on_host"},
    {"model_draft", add_further_model, "further_models"},
    {"ctx_size_draft", set_extra, "extras.draft_context"},
    {"n_gpu_layers_draft", set_extra, "extras.draft_gpu_layers"},
    {"mlock", set_extra, "extras.mlock"},
    {"no_mmap", set_extra, "extras.no_mmap"},
    {"load_mode", set_extra, "extras.load_mode"},
    {"device", set_extra, "extras.device"},
    {"fit", set_extra, "extras.fit"},
    {"fit_target", set_extra, "extras.fit_target_mib"},
    {"fit_ctx", set_extra, "extras.fit_context"},
    {"cache_ram", set_extra, "extras.prompt_cache_mib"},
    {"ctx_checkpoints", set_extra, "extras.context_checkpoints"},
    {"lora", set_extra, "extras.server_lora"},
    {"embedding", set_extra, "extras.task"},
    {"reranking", set_extra, "extras.task"},
    {"n_predict", set_extra, "extras.predict"},
    {"no_op_offload", set_extra, "extras.no_op_offload"},
    {"no_repack", set_extra, "extras.no_repack"},
    {"rpc", set_extra, "extras.rpc"},
    {"yarn_orig_ctx", set_extra, "extras.yarn_context"},
};

constexpr Irrelevant kIrrelevant[] = {
    {"threads and processors", "threads threads_batch threads_http cpu_mask* cpu_range* cpu_strict* prio* poll* numa"},
    {"how requests reach the server",
     "host port path api_prefix api_key* ssl_* timeout no_webui webui* alias metrics slots no_slots props no_slots "
     "slot_save_path slot_prompt_similarity threads_http no_cont_batching cont_batching cache_reuse warmup no_warmup "
     "tags "
     "sleep_idle_seconds models_dir media_path"},
    {"templates and formats",
     "jinja no_jinja chat_template* reasoning_format reasoning_budget spm_infill no_prefill_assistant pooling "
     "hf_token hf_repo_v hf_file_v offline skip_chat_parsing lora_init_without_apply special"},
    {"logging", "verbose verbosity log_* perf no_perf version help verbose_prompt"},
    {"sampling and positions",
     "seed temp temperature top_* min_p xtc_* typical* repeat_* presence_penalty frequency_penalty dry_* mirostat* "
     "samplers "
     "sampler_seq sampling_seq grammar* json_schema* keep rope_* yarn_* ignore_eos logit_bias dynatemp_* escape "
     "no_escape "
     "no_context_shift context_shift defrag_thold check_tensors override_kv draft_* spec_* control_vector* adaptive_* "
     "backend_sampling prompt file interactive* instruct conversation no_conversation cnv color reverse_prompt "
     "in_prefix "
     "in_suffix multiline_input simple_io"},
};

constexpr Renamed kRenamed[] = {
    {"m", "model", ""},
    {"n_ctx", "ctx_size", "llama_cpp.server"},
    {"n_batch", "batch_size", "llama_cpp.server"},
    {"p", "prompt", ""},
    {"f", "file", ""},
    {"i", "interactive", ""},
    {"ins", "instruct", ""},
    {"e", "escape", ""},
    {"r", "reverse_prompt", ""},
    {"c", "ctx_size", ""},
    {"b", "batch_size", ""},
    {"ub", "ubatch_size", ""},
    {"np", "parallel", ""},
    {"n_parallel", "parallel", ""},
    {"ngl", "n_gpu_layers", ""},
    {"gpu_layers", "n_gpu_layers", ""},
    {"fa", "flash_attn", ""},
    {"ctk", "cache_type_k", ""},
    {"ctv", "cache_type_v", ""},
    {"nkvo", "no_kv_offload", ""},
    {"ts", "tensor_split", ""},
    {"sm", "split_mode", ""},
    {"mg", "main_gpu", ""},
    {"ot", "override_tensor", ""},
    {"cmoe", "cpu_moe", ""},
    {"ncmoe", "n_cpu_moe", ""},
    {"ncffn", "n_cpu_ffn", ""},
    {"md", "model_draft", ""},
    {"ngld", "n_gpu_layers_draft", ""},
    {"cd", "ctx_size_draft", ""},
    {"mm", "mmproj", ""},
    {"hf", "hf_repo", ""},
    {"hfr", "hf_repo", ""},
    {"hff", "hf_file", ""},
    {"mu", "model_url", ""},
    {"dr", "docker_repo", ""},
    {"dev", "device", ""},
    {"lm", "load_mode", ""},
    {"cram", "cache_ram", ""},
    {"kvu", "kv_unified", ""},
    {"n", "n_predict", ""},
    {"predict", "n_predict", ""},
    {"fitt", "fit_target", ""},
    {"fitc", "fit_ctx", ""},
    {"t", "threads", ""},
    {"tb", "threads_batch", ""},
    {"s", "seed", ""},
    {"v", "verbose", ""},
    {"a", "alias", ""},
    {"embeddings", "embedding", ""},
    {"rerank", "reranking", ""},
    {"cb", "cont_batching", ""},
};

// The quantisation follows a repository's name after a colon, or is part of a file's name; both stay in the model's
// name.
void finish(Draft& draft) { draft.job.task = Task::serve; }

constexpr Dialect kDialect = {System::llama_server, "llama-server", kRules, kIrrelevant, kRenamed, {}, nullptr, finish};

}  // namespace

const Dialect& llama_server_dialect() { return kDialect; }

}  // namespace headroom::doctor
