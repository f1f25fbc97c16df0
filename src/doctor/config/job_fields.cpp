#include "doctor/config/job_fields.h"

#include <cstdlib>
#include <span>

namespace headroom::doctor {
namespace {

template <typename T>
struct Field {
  std::string_view name;
  std::optional<T>& (*of)(Job&);
};

using Whole = std::optional<int64_t>;
constexpr Field<int64_t> kWhole[] = {
    {"gpus", [](Job& j) -> Whole& { return j.devices.gpus; }},
    {"nodes", [](Job& j) -> Whole& { return j.devices.nodes; }},
    {"micro_batch", [](Job& j) -> Whole& { return j.batch.micro; }},
    {"accumulation", [](Job& j) -> Whole& { return j.batch.accumulation; }},
    {"global_batch", [](Job& j) -> Whole& { return j.batch.global; }},
    {"eval_batch", [](Job& j) -> Whole& { return j.evaluation.batch; }},
    {"sequence", [](Job& j) -> Whole& { return j.batch.sequence; }},
    {"dataloader_workers", [](Job& j) -> Whole& { return j.load.workers; }},
    {"tensor_parallel", [](Job& j) -> Whole& { return j.parallel.tensor; }},
    {"pipeline_parallel", [](Job& j) -> Whole& { return j.parallel.pipeline; }},
    {"context_parallel", [](Job& j) -> Whole& { return j.parallel.context; }},
    {"expert_parallel", [](Job& j) -> Whole& { return j.parallel.expert; }},
    {"max_model_len", [](Job& j) -> Whole& { return j.serving.max_model_len; }},
    {"max_sequences", [](Job& j) -> Whole& { return j.serving.max_sequences; }},
    {"max_batched_tokens", [](Job& j) -> Whole& { return j.serving.max_batched_tokens; }},
    {"max_new_tokens", [](Job& j) -> Whole& { return j.serving.max_new_tokens; }},
    {"kv_block_size", [](Job& j) -> Whole& { return j.serving.kv_block_size; }},
    {"kv_cache_bytes", [](Job& j) -> Whole& { return j.serving.kv_cache_bytes; }},
    {"gpu_layers", [](Job& j) -> Whole& { return j.serving.gpu_layers; }},
    {"cpu_offload_bytes", [](Job& j) -> Whole& { return j.serving.cpu_offload_bytes; }},
    {"swap_bytes", [](Job& j) -> Whole& { return j.serving.swap_bytes; }},
};

using Real = std::optional<double>;
constexpr Field<double> kReal[] = {
    {"max_grad_norm", [](Job& j) -> Real& { return j.optimizer.max_grad_norm; }},
    {"gpu_memory_utilization", [](Job& j) -> Real& { return j.serving.gpu_memory_utilization; }},
};

using Text = std::optional<std::string>;
constexpr Field<std::string> kText[] = {
    {"weight_dtype", [](Job& j) -> Text& { return j.precision.weights; }},
    {"autocast", [](Job& j) -> Text& { return j.precision.autocast; }},
    {"quantization", [](Job& j) -> Text& { return j.precision.quantization; }},
    {"attention", [](Job& j) -> Text& { return j.compute.attention; }},
    {"optimizer", [](Job& j) -> Text& { return j.optimizer.name; }},
    {"optimizer_dtype", [](Job& j) -> Text& { return j.optimizer.dtype; }},
    {"kv_dtype", [](Job& j) -> Text& { return j.serving.kv_dtype; }},
};

using Truth = std::optional<bool>;
constexpr Field<bool> kTruth[] = {
    {"checkpointing", [](Job& j) -> Truth& { return j.compute.checkpointing; }},
    {"optimizer_in_backward", [](Job& j) -> Truth& { return j.optimizer.in_backward; }},
    {"chunked_loss", [](Job& j) -> Truth& { return j.compute.chunked_loss; }},
    {"compile", [](Job& j) -> Truth& { return j.compute.compile; }},
    {"packing", [](Job& j) -> Truth& { return j.batch.packing; }},
    {"pin_memory", [](Job& j) -> Truth& { return j.load.pin_memory; }},
    {"activation_offload", [](Job& j) -> Truth& { return j.compute.activation_offload; }},
    {"forward_prefetch", [](Job& j) -> Truth& { return j.parallel.forward_prefetch; }},
    {"backward_prefetch", [](Job& j) -> Truth& { return j.parallel.backward_prefetch; }},
    {"limit_all_gathers", [](Job& j) -> Truth& { return j.parallel.limit_all_gathers; }},
    {"reshard_after_forward", [](Job& j) -> Truth& { return j.parallel.reshard_after_forward; }},
    {"flash_loss_upcast", [](Job& j) -> Truth& { return j.compute.flash_loss_upcast; }},
    {"eager", [](Job& j) -> Truth& { return j.serving.eager; }},
};

// A key without a field of its own. In `text` the readers write truth values as "true" and "false".
struct Extra {
  std::string_view name;
  void (*set)(Job&, const std::string& text);
};

constexpr Extra kExtras[] = {
    {"auto_find_batch_size", [](Job& j, const std::string& text) { j.batch.finds_size = text != "false"; }},
    {"group_by_length", [](Job& j, const std::string& text) { j.batch.by_length = text != "false"; }},
    {"eval_accumulation_steps",
     [](Job& j, const std::string& text) { j.evaluation.accumulation = std::atoll(text.c_str()); }},
    {"prediction_loss_only", [](Job& j, const std::string& text) { j.evaluation.loss_only = text == "true"; }},
    {"qat", [](Job& j, const std::string& text) { j.precision.fake_quantised = text != "false"; }},
    {"half_precision_backend", [](Job& j, const std::string& text) { j.precision.apex |= text == "apex"; }},
    {"fp16_opt_level", [](Job& j, const std::string&) { j.precision.apex = true; }},
    {"optimizer_fused", [](Job& j, const std::string& text) { j.optimizer.fused = text == "true"; }},
    {"liger", [](Job& j, const std::string& text) { j.compute.liger = text == "true"; }},
    {"no_grad", [](Job& j, const std::string& text) { j.compute.no_grad = text != "false"; }},
    {"deepspeed", [](Job& j, const std::string&) { j.parallel.deepspeed = true; }},
    {"fsdp_version", [](Job& j, const std::string& text) { j.parallel.fsdp2 = text == "2"; }},
    {"state_dict_type",
     [](Job& j, const std::string& text) { j.parallel.sharded_save = text == "SHARDED_STATE_DICT"; }},
    {"cpu_ram_efficient_loading", [](Job& j, const std::string& text) { j.load.ram_efficient = text == "true"; }},
    {"from_scratch", [](Job& j, const std::string& text) { j.load.from_scratch = text == "true"; }},
    {"chunked_prefill_size",
     [](Job& j, const std::string& text) { j.serving.prefill_chunk = std::atoll(text.c_str()); }},
    {"freeze", [](Job& j, const std::string& text) { j.frozen = text; }},
    {"library", [](Job& j, const std::string& text) { j.library = text; }},
};

template <typename T>
std::optional<T>* find_field(std::span<const Field<T>> fields, Job& job, std::string_view name) {
  for (const Field<T>& field : fields)
    if (field.name == name) return &field.of(job);
  return nullptr;
}

}  // namespace

std::optional<int64_t>* whole_field(Job& job, std::string_view name) {
  return find_field(std::span<const Field<int64_t>>(kWhole), job, name);
}

std::optional<double>* real_field(Job& job, std::string_view name) {
  return find_field(std::span<const Field<double>>(kReal), job, name);
}

std::optional<bool>* truth_field(Job& job, std::string_view name) {
  return find_field(std::span<const Field<bool>>(kTruth), job, name);
}

std::optional<std::string>* text_field(Job& job, std::string_view name) {
  return find_field(std::span<const Field<std::string>>(kText), job, name);
}

void set_extra_field(Job& job, std::string_view name, const std::string& text) {
  for (const Extra& extra : kExtras)
    if (extra.name == name) return extra.set(job, text);
}

}  // namespace headroom::doctor
