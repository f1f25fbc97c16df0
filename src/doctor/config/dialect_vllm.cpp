// vLLM: `vllm serve`, its YAML, and the arguments of LLM() and EngineArgs.
#include <cmath>

#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

// vLLM's human-readable integers: "32768", "32k" (thousands), "32K" (1024s), "1M"; -1 and auto: as many as fit.
std::string_view set_human(Draft& draft, const Setting& setting, const KeyRule& rule) {
  std::string text = setting.text;
  if (text == "-1" || text == "auto") return {};
  double factor = 1;
  if (!text.empty()) {
    const char suffix = text.back();
    factor = suffix == 'k'   ? 1e3
             : suffix == 'm' ? 1e6
             : suffix == 'g' ? 1e9
             : suffix == 'K' ? 1024.0
             : suffix == 'M' ? 1048576.0
             : suffix == 'G' ? 1073741824.0
                             : 1;
    if (factor != 1) text.pop_back();
  }
  const std::optional<double> value = real_number(text);
  if (!value || *value * factor < 1 || *value * factor > 9e15) return "not a whole number in range";
  draft.set(whole_field_of(draft, rule), static_cast<int64_t>(std::llround(*value * factor)), std::string(rule.field),
            setting.origin);
  return {};
}

// GiB, the unit of --swap-space and --cpu-offload-gb.
std::string_view set_gib(Draft& draft, const Setting& setting, const KeyRule& rule) {
  const std::optional<double> value = real_number(setting);
  if (!value || *value < 0 || *value > 1e6) return "not a number of GiB";
  draft.set(whole_field_of(draft, rule), static_cast<int64_t>(std::llround(*value * 1073741824.0)),
            std::string(rule.field), setting.origin);
  return {};
}

// A kind of device ("cuda"), or a device's name ("V100 32 GB x1").
std::string_view set_device(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::string word = lower(setting.text);
  for (const char* kind : {"auto", "cuda", "cpu", "tpu", "xpu", "hpu", "neuron"})
    if (word == kind) {
      draft.set_extra("device", word, setting.origin);
      return {};
    }
  draft.set(draft.job.devices.gpu, setting.text, "gpu", setting.origin);
  return {};
}

std::string_view set_quantization(Draft& draft, const Setting& setting, const KeyRule&) {
  std::string method = lower(setting.text);
  // These name kernels; the weights are of the same kind.
  if (method == "awq_marlin" || method == "gptq_marlin") method.resize(method.find('_'));
  if (method == "moe_wna16") method = lower(draft.job.model).find("gptq") != std::string::npos ? "gptq" : "awq";
  draft.set(draft.job.precision.quantization, std::move(method), "quantization", setting.origin);
  return {};
}

std::string_view set_kv_dtype(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::string word = lower(setting.text);
  if (word != "auto")
    draft.set(draft.job.serving.kv_dtype, canonical_dtype(word).value_or(word), "kv_dtype", setting.origin);
  return {};
}

std::string_view set_fraction(Draft& draft, const Setting& setting, const KeyRule& rule) {
  const std::optional<double> value = real_number(setting);
  if (!value || *value <= 0 || *value > 1) return "no fraction between 0 and 1";
  draft.set(draft.job.serving.gpu_memory_utilization, *value, std::string(rule.field), setting.origin);
  return {};
}

constexpr KeyRule kRules[] = {
    {"model", set_model, "model"},
    {"model_tag", set_model, "model"},
    {"dtype", set_dtype, "weight_dtype"},
    {"quantization", set_quantization, "quantization"},
    {"q", set_quantization, "quantization"},
    {"kv_cache_dtype", set_kv_dtype, "kv_dtype"},
    {"gpu_memory_utilization", set_fraction, "gpu_memory_utilization"},
    {"kv_cache_memory_bytes", set_human, "kv_cache_bytes"},
    {"max_model_len", set_human, "max_model_len"},
    {"max_num_seqs", set_count, "max_sequences"},
    {"max_num_batched_tokens", set_human, "max_batched_tokens"},
    {"block_size", set_count, "kv_block_size"},
    {"num_gpu_blocks_override", set_extra, "extras.kv_blocks"},
    {"swap_space", set_gib, "swap_bytes"},
    {"cpu_offload_gb", set_gib, "cpu_offload_bytes"},
    {"enforce_eager", set_truth, "eager"},
    {"tensor_parallel_size", set_count, "tensor_parallel"},
    {"tp", set_count, "tensor_parallel"},
    {"pipeline_parallel_size", set_count, "pipeline_parallel"},
    {"pp", set_count, "pipeline_parallel"},
    {"data_parallel_size", set_extra, "extras.data_parallel"},
    {"dp", set_extra, "extras.data_parallel"},
    {"enable_expert_parallel", set_extra, "extras.expert_parallel"},
    {"enable_chunked_prefill", set_extra, "extras.chunked_prefill"},
    {"enable_prefix_caching", set_extra, "extras.prefix_caching"},
    {"disable_sliding_window", set_extra, "extras.no_sliding_window"},
    {"max_seq_len_to_capture", set_extra, "extras.capture_length"},
    {"cuda_graph_sizes", set_extra, "extras.capture_sizes"},
    {"cudagraph_capture_sizes", set_extra, "extras.capture_sizes"},
    {"max_cudagraph_capture_size", set_extra, "extras.capture_sizes"},
    {"compilation_config*", set_extra, "extras.compilation"},
    {"o", set_extra, "extras.compilation"},
    {"optimization_level", set_extra, "extras.compilation"},
    {"enable_lora", set_extra, "extras.server_lora"},
    {"max_loras", set_extra, "extras.server_loras"},
    {"max_lora_rank", set_extra, "extras.server_lora_rank"},
    {"max_cpu_loras", set_extra, "extras.server_cpu_loras"},
    {"lora_extra_vocab_size", set_extra, "extras.server_lora_vocab"},
    {"fully_sharded_loras", set_extra, "extras.server_lora_sharded"},
    {"limit_mm_per_prompt*", set_extra, "extras.media_per_prompt"},
    {"mm_processor_kwargs*", set_extra, "extras.media_options"},
    {"speculative_model", add_further_model, "further_models"},
    {"speculative_config*", set_extra, "extras.speculative"},
    {"num_speculative_tokens", set_extra, "extras.speculative_tokens"},
    {"num_lookahead_slots", set_extra, "extras.speculative_tokens"},
    {"device", set_device, "extras.device"},
    {"load_format", set_extra, "extras.load_format"},
    {"enable_sleep_mode", set_extra, "extras.sleep"},
    {"kv_offloading_size", set_gib, "swap_bytes"},
    {"kv_transfer_config*", set_extra, "extras.kv_transfer"},
    {"hf_overrides*", set_extra, "extras.model_overrides"},
    {"rope_scaling*", set_extra, "extras.rope_scaling"},
    {"disable_custom_all_reduce", set_extra, "extras.no_custom_all_reduce"},
    {"max_tokens", set_count, "max_new_tokens"},
    {"calculate_kv_scales", set_extra, "extras.kv_scales"},
    {"config", refer, "a file"},
    {"distributed_executor_backend", set_extra, "extras.executor"},
    {"task", set_extra, "extras.task"},
    {"runner", set_extra, "extras.task"},
    {"adapter", set_extra, "extras.server_lora"},
    {"log.*", set_extra, "extras.log"},
    {"env.*", set_extra, "extras.env"},
};

constexpr Irrelevant kIrrelevant[] = {
    {"how requests reach the server",
     "host port uds api_key ssl_* root_path served_model_name allow_credentials allowed_* middleware api_server_count "
     "uvicorn_log_level disable_uvicorn_access_log enable_ssl_refresh headless disable_frontend_multiprocessing "
     "response_role enable_request_id_headers h11_* max_concurrent_requests"},
    {"templates, tools and formats of answers",
     "chat_template chat_template_content_format enable_auto_tool_choice tool_call_parser tool_parser_plugin "
     "reasoning_parser enable_reasoning guided_decoding_* structured_outputs_config* return_tokens_as_token_ids "
     "logits_processor* enable_prompt_tokens_details enable_server_load_tracking exclude_tools_when_tool_choice_none "
     "generation_config override_generation_config* max_logprobs template"},
    {"names, versions and places of the model's files",
     "tokenizer tokenizer_mode skip_tokenizer_init trust_remote_code revision code_revision tokenizer_revision "
     "download_dir config_format hf_token hf_config_path lora_modules model_loader_extra_config* ignore_patterns "
     "use_tqdm_on_load safetensors_load_strategy rope_theta seed model_impl"},
    {"logging and statistics",
     "disable_log_requests enable_log_requests disable_log_stats max_log_len otlp_traces_endpoint "
     "collect_detailed_traces show_hidden_metrics_for_version log_config_file kv_events_config* enable_log_outputs"},
    {"order of requests and number of processes",
     "scheduling_policy scheduler_delay_factor num_scheduler_steps multi_step_stream_outputs preemption_mode "
     "async_scheduling disable_async_output_proc max_num_partial_prefills max_long_partial_prefills "
     "long_prefill_token_threshold scheduler_cls worker_cls worker_extension_cls max_parallel_loading_workers "
     "ray_workers_use_nsight tokenizer_pool_* data_parallel_* prefix_caching_hash_algo use_v2_block_manager "
     "nnodes node_rank master_addr master_port disable_mm_preprocessor_cache stream_interval"},
    {"sampling", "temperature top_p top_k min_p n best_of stop presence_penalty frequency_penalty repetition_penalty"},
};

constexpr Renamed kRenamed[] = {
    {"gpu_memory_util", "gpu_memory_utilization", "vLLM's name is --gpu-memory-utilization"},
    {"gpu_memory_fraction", "gpu_memory_utilization", "vLLM's name is --gpu-memory-utilization"},
    {"max_model_length", "max_model_len", "vLLM's name is --max-model-len"},
    {"max_seq_len", "max_model_len", "vLLM's name is --max-model-len"},
    {"max_seq_length", "max_model_len", "vLLM's name is --max-model-len"},
    {"vllm_enforce_eager", "enforce_eager", "LLaMA-Factory puts vllm_ in front"},
    {"max_context_len_to_capture", "max_seq_len_to_capture", "vLLM 0.4.1"},
};

void finish(Draft& draft) {
  draft.job.task = Task::serve;
  const int64_t devices = draft.job.parallel.tensor.value_or(1) * draft.job.parallel.pipeline.value_or(1);
  if (devices > 1 && devices < 1'000'000 && draft.job.keys.origins.count("tensor_parallel"))
    draft.imply(draft.job.devices.gpus, devices, "gpus", draft.job.keys.origins["tensor_parallel"]);
}

constexpr Dialect kDialect = {System::vllm, "vLLM", kRules, kIrrelevant, kRenamed, {}, nullptr, finish};

}  // namespace

const Dialect& vllm_dialect() { return kDialect; }

}  // namespace headroom::doctor
