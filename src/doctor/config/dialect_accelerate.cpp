#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

std::string_view set_mixed_precision(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::string word = lower(setting.text);
  const std::optional<std::string> dtype = canonical_dtype(word);
  if (!dtype && !truth(setting)) return "not a kind of mixed precision";
  draft.set(draft.job.precision.autocast, dtype.value_or("none"), "autocast", setting.origin);
  return {};
}

std::string_view set_distributed_type(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::string word = lower(setting.text);
  const bool alone = word == "no" || word == "false";
  if (word == "fsdp") draft.facts["fsdp.on"] = setting;
  if (word.starts_with("multi_")) draft.imply(draft.job.parallel.sharding, Sharding::ddp, "sharding", setting.origin);
  if (alone) draft.imply(draft.job.parallel.sharding, Sharding::none, "sharding", setting.origin);
  if (word == "deepspeed" || word == "megatron_lm" || word.starts_with("tp") || word == "xla")
    draft.set_extra("distributed_type", word, setting.origin);
  return {};
}

// num_processes is the number of GPUs of all machines together.
constexpr KeyRule kRules[] = {
    {"distributed_type", set_distributed_type, "sharding"},
    {"mixed_precision", set_mixed_precision, "autocast"},
    {"num_processes", set_gpus, "gpus"},
    {"num_machines", set_count, "nodes"},
    {"use_cpu", set_extra, "extras.use_cpu"},
    {"downcast_bf16", set_extra, "extras.downcast_bf16"},
    {"gradient_accumulation_steps", set_count, "accumulation"},
    {"deepspeed_config.zero_stage", set_zero_stage, "sharding"},
    {"deepspeed_config.offload_optimizer_device", set_offload_optimizer, "offload_optimizer"},
    {"deepspeed_config.offload_param_device", set_offload_parameters, "offload_parameters"},
    {"deepspeed_config.gradient_accumulation_steps", set_count, "accumulation"},
    {"deepspeed_config.gradient_clipping", set_real, "max_grad_norm"},
    {"deepspeed_config.zero3_init_flag", set_extra, "extras.zero3_init"},
    {"deepspeed_config.zero3_save_16bit_model", set_extra, "extras.gather_on_save"},
    {"deepspeed_config.deepspeed_config_file", refer, "a file"},
    {"parallelism_config.dp_replicate_size", set_buffer, "buffers.dp_replicate"},
    {"parallelism_config.dp_shard_size", set_buffer, "buffers.dp_shard"},
    {"parallelism_config.tp_size", set_count, "tensor_parallel"},
    {"parallelism_config.cp_size", set_count, "context_parallel"},
    {"parallelism_config.sp_size", set_count, "context_parallel"},
    {"parallelism_config.sp_attn_implementation", set_attention, "attention"},
    {"dynamo_config.*", set_extra, "extras.dynamo"},
    {"fp8_config.*", set_extra, "extras.fp8_config"},
    {"megatron_lm_config.megatron_lm_tp_degree", set_count, "tensor_parallel"},
    {"megatron_lm_config.megatron_lm_pp_degree", set_count, "pipeline_parallel"},
    {"megatron_lm_config.megatron_lm_recompute_activations", set_truth, "checkpointing"},
    {"megatron_lm_config.megatron_lm_use_distributed_optimizer", set_extra, "extras.distributed_optimizer"},
    {"megatron_lm_config.megatron_lm_sequence_parallelism", set_extra, "extras.megatron_sequence_parallel"},
};

constexpr Irrelevant kIrrelevant[] = {
    {"how processes find each other",
     "compute_environment machine_rank main_process_ip main_process_port rdzv_backend same_network gpu_ids "
     "main_training_function debug mpirun_config.* deepspeed_config.deepspeed_multinode_launcher "
     "deepspeed_config.deepspeed_hostfile deepspeed_config.deepspeed_exclusion_filter "
     "deepspeed_config.deepspeed_inclusion_filter enable_cpu_affinity"},
    {"only for TPUs and clouds",
     "tpu_* command_file commands ec2_instance_type iam_role_name image_uri profile region base_job_name "
     "pytorch_version transformers_version py_version sagemaker_* additional_args"},
    {"how sequences travel between devices",
     "parallelism_config.sp_backend parallelism_config.sp_seq_length_is_variable parallelism_config.sp_seq_length "
     "parallelism_config.cp_comm_strategy parallelism_config.cp_backend "
     "deepspeed_config.seq_parallel_communication_data_type"},
    {"names of classes", "deepspeed_config.deepspeed_moe_layer_cls_names ipex_config.*"},
    {"Megatron's clipping and micro-batches follow the script", "megatron_lm_config.*"},
};

constexpr Renamed kRenamed[] = {
    {"fp16", "mixed_precision", "Accelerate 0.5: mixed_precision: fp16"},
};

constexpr DialectOf kBases[] = {fsdp_dialect};

std::string rewrite(std::string_view path) {
  constexpr std::string_view kParallel = "parallelism_config.parallelism_config_";
  if (path.starts_with(kParallel)) return "parallelism_config." + std::string(path.substr(kParallel.size()));
  return fsdp_dialect().rewrite(path);
}

constexpr Dialect kDialect = {System::accelerate, "Accelerate", kRules,  kIrrelevant,
                              kRenamed,           kBases,       rewrite, nullptr};

// Options of `accelerate launch`: the file's keys without their section.
std::string rewrite_launch(std::string_view path) {
  if (path.starts_with("fsdp_")) return "fsdp_config." + std::string(path.substr(5));
  if (path.starts_with("parallelism_config_")) return "parallelism_config." + std::string(path.substr(19));
  for (std::string_view key : {"zero_stage", "offload_optimizer_device", "offload_param_device", "zero3_init_flag",
                               "zero3_save_16bit_model", "deepspeed_multinode_launcher", "deepspeed_hostfile"})
    if (path == key) return "deepspeed_config." + std::string(path);
  if (path == "deepspeed_config_file") return "deepspeed_config.deepspeed_config_file";
  return std::string(path);
}

std::string_view launch_fsdp(Draft& draft, const Setting& setting, const KeyRule&) {
  if (truth(setting).value_or(true)) draft.facts["fsdp.on"] = setting;
  return {};
}

constexpr KeyRule kLaunchRules[] = {
    {"config_file", refer, "a file"},
    {"use_fsdp", launch_fsdp, "sharding"},
    {"use_deepspeed", set_extra, "extras.distributed_type"},
    {"cpu", set_extra, "extras.use_cpu"},
    {"dynamo_backend", set_extra, "extras.dynamo"},
};
constexpr Irrelevant kLaunchIrrelevant[] = {
    {"how processes are started",
     "multi_gpu module m no_python quiet num_cpu_threads_per_process rdzv_conf max_restarts monitor_interval tee role "
     "log_dir enable_cpu_affinity mpirun_hostfile use_xpu ipex tpu tpu_use_cluster debug_launcher"},
};
constexpr DialectOf kLaunchBases[] = {accelerate_dialect};
constexpr Dialect kLaunch = {System::accelerate, "accelerate launch", kLaunchRules, kLaunchIrrelevant, {},
                             kLaunchBases,       rewrite_launch,      nullptr};

}  // namespace

const Dialect& accelerate_dialect() { return kDialect; }
const Dialect& accelerate_launch_dialect() { return kLaunch; }

}  // namespace headroom::doctor
