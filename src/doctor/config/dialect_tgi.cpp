// text-generation-inference: the options of text-generation-launcher.
#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

std::string_view set_gpu_name(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.set(draft.job.devices.gpu, setting.text, "gpu", setting.origin);
  return {};
}

std::string_view set_kv(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.set(draft.job.serving.kv_dtype, lower(setting.text), "kv_dtype", setting.origin);
  return {};
}

constexpr KeyRule kRules[] = {
    {"model_id", set_model, "model"},
    {"dtype", set_dtype, "weight_dtype"},
    {"quantize", set_extra, "extras.quantize"},
    {"num_shard", set_count, "tensor_parallel"},
    {"max_concurrent_requests", set_count, "max_sequences"},
    {"max_input_length", set_extra, "extras.input_length"},
    {"max_input_tokens", set_extra, "extras.input_length"},
    {"max_total_tokens", set_count, "max_model_len"},
    {"max_batch_prefill_tokens", set_count, "max_batched_tokens"},
    {"max_batch_total_tokens", set_extra, "extras.kv_tokens"},
    {"max_batch_size", set_extra, "extras.batch"},
    {"cuda_memory_fraction", set_real, "gpu_memory_utilization"},
    {"kv_cache_dtype", set_kv, "kv_dtype"},
    {"cuda_graphs", set_extra, "extras.capture_sizes"},
    {"speculate", set_extra, "extras.speculative"},
    {"device", set_gpu_name, "gpu"},
};
constexpr Irrelevant kIrrelevant[] = {
    {"how requests reach the server",
     "hostname port shard_uds_path master_* huggingface_hub_cache weights_cache_override json_output otlp_* cors_* "
     "api_key ngrok* tokenizer_config_path disable_grammar_support env max_client_batch_size max_best_of "
     "max_stop_sequences max_top_n_tokens waiting_served_ratio max_waiting_tokens validation_workers revision "
     "trust_remote_code sharded watermark_* lora_adapters usage_stats payload_limit enable_prefill_logprobs"},
};

void finish(Draft& draft) { draft.job.task = Task::serve; }

constexpr Dialect kDialect = {System::tgi, "text-generation-inference", kRules, kIrrelevant, {}, {}, nullptr, finish};

}  // namespace

const Dialect& tgi_dialect() { return kDialect; }

}  // namespace headroom::doctor
