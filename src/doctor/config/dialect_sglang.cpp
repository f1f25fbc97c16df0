// SGLang: `python -m sglang.launch_server`, `sglang serve` and the arguments of sgl.Engine().
#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

std::string_view set_quantization(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.set(draft.job.precision.quantization, lower(setting.text), "quantization", setting.origin);
  return {};
}

std::string_view set_kv_dtype(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::string word = lower(setting.text);
  if (word != "auto")
    draft.set(draft.job.serving.kv_dtype, canonical_dtype(word).value_or(word), "kv_dtype", setting.origin);
  return {};
}

constexpr KeyRule kRules[] = {
    {"model_path", set_model, "model"},
    {"dtype", set_dtype, "weight_dtype"},
    {"quantization", set_quantization, "quantization"},
    {"kv_cache_dtype", set_kv_dtype, "kv_dtype"},
    {"mem_fraction_static", set_real, "gpu_memory_utilization"},
    {"context_length", set_count, "max_model_len"},
    {"max_running_requests", set_count, "max_sequences"},
    {"max_total_tokens", set_extra, "extras.kv_tokens"},
    {"chunked_prefill_size", set_extra, "extras.chunked_prefill_size"},
    {"max_prefill_tokens", set_count, "max_batched_tokens"},
    {"page_size", set_count, "kv_block_size"},
    {"disable_cuda_graph", set_truth, "eager"},
    {"cuda_graph_max_bs", set_extra, "extras.capture_sizes"},
    {"cuda_graph_bs", set_extra, "extras.capture_sizes"},
    {"disable_cuda_graph_padding", set_extra, "extras.capture_padding"},
    {"enable_torch_compile", set_truth, "compile"},
    {"torch_compile_max_bs", set_extra, "extras.compile_batch"},
    {"tp_size", set_count, "tensor_parallel"},
    {"pp_size", set_count, "pipeline_parallel"},
    {"dp_size", set_extra, "extras.data_parallel"},
    {"ep_size", set_count, "expert_parallel"},
    {"enable_dp_attention", set_extra, "extras.dp_attention"},
    {"attention_backend", set_extra, "extras.attention_backend"},
    {"cpu_offload_gb", set_extra, "extras.cpu_offload_gb"},
    {"enable_hierarchical_cache", set_extra, "extras.hierarchical_cache"},
    {"hicache_ratio", set_extra, "extras.hicache_ratio"},
    {"hicache_size", set_extra, "extras.hicache_size"},
    {"enable_memory_saver", set_extra, "extras.sleep"},
    {"disable_radix_cache", set_extra, "extras.no_prefix_caching"},
    {"speculative_draft_model_path", add_further_model, "further_models"},
    {"speculative_*", set_extra, "extras.speculative"},
    {"lora_paths", set_extra, "extras.server_lora"},
    {"max_loras_per_batch", set_extra, "extras.server_loras"},
    {"max_lora_rank", set_extra, "extras.server_lora_rank"},
    {"enable_multimodal", set_extra, "extras.multimodal"},
    {"enable_mixed_chunk", set_extra, "extras.mixed_chunk"},
    {"swa_full_tokens_ratio", set_extra, "extras.swa_ratio"},
    {"nnodes", set_count, "nodes"},
    {"device", set_extra, "extras.device"},
    {"load_format", set_extra, "extras.load_format"},
    {"is_embedding", set_extra, "extras.task"},
    {"disaggregation_mode", set_extra, "extras.disaggregation"},
    {"config", refer, "a file"},
};

constexpr Irrelevant kIrrelevant[] = {
    {"how requests reach the server",
     "host port api_key served_model_name ssl_* fastapi_root_path dist_init_addr nccl_port node_rank base_gpu_id "
     "gpu_id_step skip_server_warmup warmups tokenizer_worker_num admin_api_key grpc_mode"},
    {"names, versions and templates",
     "tokenizer_path tokenizer_mode skip_tokenizer_init trust_remote_code revision download_dir model_impl "
     "chat_template "
     "completion_template json_model_override_args tool_call_parser reasoning_parser hf_chat_template_name "
     "sampling_defaults "
     "preferred_sampling_params model_loader_extra_config"},
    {"logging and statistics",
     "log_* enable_metrics* show_time_cost enable_trace otlp_* bucket_* collect_tokens_histogram crash_dump_folder "
     "decode_log_interval enable_request_time_stats_logging kv_events_config gc_warning_threshold_secs"},
    {"order of requests and choice of kernels",
     "schedule_policy schedule_conservativeness stream_interval stream_output random_seed constrained_json_* "
     "watchdog_timeout sampling_backend grammar_backend moe_* fp8_gemm_backend disable_overlap_schedule "
     "disable_custom_all_reduce enable_nccl_nvls enable_p2p_check triton_attention_* num_continuous_decode_steps "
     "enable_mscclpp load_balance_method allow_auto_truncate disable_outlines_disk_cache radix_eviction_policy "
     "decode_attention_backend prefill_attention_backend mm_attention_backend numa_node enable_cache_report "
     "disable_chunked_prefix_cache disable_fast_image_processor file_storage_path delete_ckpt_after_loading "
     "enable_deterministic_inference prefill_round_robin_balance"},
};

constexpr Renamed kRenamed[] = {
    {"model", "model_path", ""},
    {"tp", "tp_size", ""},
    {"tensor_parallel_size", "tp_size", ""},
    {"pipeline_parallel_size", "pp_size", ""},
    {"dp", "dp_size", ""},
    {"data_parallel_size", "dp_size", ""},
    {"ep", "ep_size", ""},
    {"gpu_memory_utilization", "mem_fraction_static", "vLLM's name; SGLang's is --mem-fraction-static"},
    {"max_model_len", "context_length", "vLLM's name; SGLang's is --context-length"},
};

void finish(Draft& draft) {
  draft.job.task = Task::serve;
  const int64_t devices = draft.job.parallel.tensor.value_or(1) * draft.job.parallel.pipeline.value_or(1);
  if (devices > 1 && devices < 1'000'000 && draft.job.keys.origins.count("tensor_parallel"))
    draft.imply(draft.job.devices.gpus, devices, "gpus", draft.job.keys.origins["tensor_parallel"]);
}

constexpr Dialect kDialect = {System::sglang, "SGLang", kRules, kIrrelevant, kRenamed, {}, nullptr, finish};

}  // namespace

const Dialect& sglang_dialect() { return kDialect; }

}  // namespace headroom::doctor
