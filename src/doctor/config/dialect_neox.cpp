// GPT-NeoX: YAML with keys in kebab or snake case (megatron/neox_arguments), DeepSpeed's sections among them.
#include <fmt/format.h>

#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

// [[["flash"], 24]]: kinds of attention per layer.
std::string_view set_attention_config(Draft& draft, const Setting& setting, const KeyRule&) {
  const bool flash = lower(setting.text).find("flash") != std::string::npos;
  draft.set(draft.job.compute.attention, std::string(flash ? "flash_attention_2" : "eager"), "attention",
            setting.origin);
  return {};
}

std::string_view set_precision(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::optional<std::string> dtype = canonical_dtype(setting.text);
  if (!dtype) return "not a number type";
  draft.set(draft.job.precision.weights, *dtype, "weight_dtype", setting.origin);
  draft.set(draft.job.precision.autocast, *dtype == "float32" ? std::string("none") : *dtype, "autocast",
            setting.origin);
  return {};
}

constexpr KeyRule kRules[] = {
    {"num_layers", set_architecture, "architecture.layers"},
    {"hidden_size", set_architecture, "architecture.hidden"},
    {"num_attention_heads", set_architecture, "architecture.heads"},
    {"num_kv_heads", set_architecture, "architecture.kv_heads"},
    {"intermediate_size", set_architecture, "architecture.intermediate"},
    {"expansion_factor", set_extra, "extras.expansion_factor"},
    {"max_position_embeddings", set_architecture, "architecture.max_positions"},
    {"padded_vocab_size", set_architecture, "architecture.vocab"},
    {"make_vocab_size_divisible_by", set_extra, "extras.vocab_multiple"},
    {"no_weight_tying", set_extra, "extras.untied"},
    {"moe_num_experts", set_architecture, "architecture.experts"},
    {"moe_top_k", set_architecture, "architecture.experts_per_token"},
    {"moe_expert_interval", set_extra, "extras.moe_interval"},
    {"seq_length", set_count, "sequence"},
    {"sliding_window_width", set_extra, "extras.sliding_window"},
    {"attention_config*", set_attention_config, "attention"},
    {"activation", set_extra, "extras.activation"},
    {"mlp_type", set_extra, "extras.mlp_type"},
    {"gas", set_count, "accumulation"},
    {"batch_size", set_count, "micro_batch"},
    {"precision", set_precision, "weight_dtype"},
    {"clip_grad", set_real, "max_grad_norm"},
    {"optimizer_type", set_optimizer, "optimizer"},
    {"zero_stage", set_zero_stage, "sharding"},
    {"zero_reduce_bucket_size", set_buffer, "buffers.reduce_bucket_size"},
    {"zero_allgather_bucket_size", set_buffer, "buffers.allgather_bucket_size"},
    {"pipe_parallel_size", set_whole, "pipeline_parallel"},
    {"model_parallel_size", set_whole, "tensor_parallel"},
    {"sequence_parallel", set_extra, "extras.megatron_sequence_parallel"},
    {"expert_parallel_size", set_count, "expert_parallel"},
    {"num_gpus", set_gpus, "gpus"},
    {"global_num_gpus", set_gpus, "gpus"},
    {"num_nodes", remember, "neox.nodes"},
    {"checkpoint_activations", set_truth, "checkpointing"},
    {"checkpoint_num_layers", set_extra, "extras.checkpoint_interval"},
    {"partition_activations", set_extra, "extras.partition_activations"},
    {"checkpoint_in_cpu", set_truth, "activation_offload"},
    {"contiguous_checkpointing", set_extra, "extras.contiguous_checkpoints"},
    {"fp16_lm_cross_entropy", set_opposite, "flash_loss_upcast"},
    {"attention_softmax_in_fp32", set_extra, "extras.softmax_float32"},
    {"num_workers", set_whole, "dataloader_workers"},
    {"scaled_upper_triang_masked_softmax_fusion", set_extra, "extras.softmax_fusion"},
    {"scaled_masked_softmax_fusion", set_extra, "extras.softmax_fusion"},
    {"bias_gelu_fusion", set_extra, "extras.gelu_fusion"},
    {"bias_dropout_fusion", set_extra, "extras.dropout_fusion"},
    {"gpt_j_residual", set_extra, "extras.parallel_residual"},
    {"hidden_dropout", set_extra, "extras.hidden_dropout"},
    {"attention_dropout", set_extra, "extras.attention_dropout"},
    {"finetune", set_extra, "extras.finetune"},
    {"load", set_extra, "extras.load"},
    {"train_impl", set_objective, "objective"},
    {"use_bnb_optimizer", set_extra, "extras.bnb_optimizer"},
    {"zero_optimization.cpu_offload", set_offload_optimizer, "offload_optimizer"},
};

constexpr Irrelevant kIrrelevant[] = {
    {"how the model computes, with the same tensors",
     "pos_emb rotary_* rpe_* opt_pos_emb_offset norm layernorm_* rms_norm_* scalenorm_* rmsnorm_fusion rope_fusion "
     "init_method* "
     "output_layer_init_method output_layer_parallelism use_bias_* use_qk_layernorm gpt_j_tied gmlp_attn_dim use_mup "
     "mup_* "
     "pipe_partition_method mlp_multiple_of apply_query_key_layer_scaling use_cpu_initialization moe_* dim_att "
     "head_size "
     "te_* use_flashattn_swiglu mamba_* num_unique_layers param_sharing_style sparsity_config* soft_prompt_tuning* "
     "coord_check base_shapes_file save_base_shapes"},
    {"how long, how often and how fast it trains",
     "min_lr lr lr_decay_* warmup override_lr_scheduler use_checkpoint_lr_scheduler train_iters train_epochs eval_* "
     "weight_decay checkpoint_factor checkpoint_scale extra_save_iters keep_last_n_checkpoints exit_interval save "
     "no_save_* no_load_* s3_* iteration do_* checkpoint_validation_with_forward_pass"},
    {"scales the loss; takes no memory", "loss_scale loss_scale_window hysteresis min_scale dynamic_loss_scale"},
    {"choice and preparation of the data; read as a stream",
     "data_path data_impl train_* test_* valid_* pos_* neg_* tokenizer_type vocab_file merge_file split mmap_warmup "
     "weight_by_num_documents weighted_sampler_alpha pack_impl dataset_impl allow_chopped label_data* shuffle_* "
     "short_seq_prob eod_mask_loss reset_* use_shared_fs"},
    {"logging and reports",
     "log_* logging* wandb_* use_wandb tensorboard_dir git_hash comet_* use_comet memory_profiling* profile* "
     "gradient_noise_scale_* peak_theoretical_tflops char_level_ppl"},
    {"how processes start and talk",
     "distributed_backend launcher deepspeed_slurm deepspeed_mpi deepspeed deepscale* local_rank rank world_size "
     "hostfile "
     "include exclude master_* force_multi no_ssh_check comment account user_script config_files lazy_mpu_init "
     "synchronize_each_layer deepspeed_extra_args* deepspeed_activation_checkpointing zero_reduce_scatter "
     "zero_contiguous_gradients is_pipe_parallel adlr_* onnx_safe fused_kernels_build_path seed"},
    {"weights of the loss", "dpo_* kto_* kl_* z_loss fp32_reinforce reinforce_*"},
    {"text generation after training",
     "text_gen_type temperature top_p top_k maximum_tokens prompt_end sample_* num_samples "
     "recompute return_logits precompute_model_name"},
};

constexpr Renamed kRenamed[] = {
    {"max_seq_length", "seq_length", "GPT-NeoX's name is seq-length"},
    {"gradient_checkpointing", "checkpoint_activations", "GPT-NeoX's name is checkpoint-activations"},
};

// The file describes a network without naming it, so its parameters are computed from the shape (weights and biases of
// every layer, both embeddings, learned positions if any). The vocabulary is the padded size of GPT-NeoX's tokenizer,
// 50304, unless the file states another.
void name_model(Draft& draft) {
  Job& job = draft.job;
  const auto shape = [&](const char* name, int64_t otherwise) {
    const auto found = job.architecture.find(name);
    return found == job.architecture.end() ? otherwise : found->second;
  };
  const int64_t layers = shape("layers", 0), hidden = shape("hidden", 0), vocab = shape("vocab", 50304);
  if (layers < 1 || hidden < 1 || layers > 100'000 || hidden > 1'000'000 || vocab > 10'000'000) return;
  if (job.model.empty()) {
    job.model = fmt::format("gpt-neox-{}x{}", layers, hidden);
    job.keys.origins["model"] = job.keys.origins["architecture.hidden"];
  }
  const auto h = static_cast<double>(hidden);
  const auto untied = draft.extras.find("untied");
  const double embeddings = untied != draft.extras.end() && untied->second == "true" ? 2 : 1;
  job.parameters =
      static_cast<double>(layers) * (12 * h * h + 13 * h) + embeddings * static_cast<double>(vocab) * h + 2 * h;
  job.keys.origins["parameters"] = job.keys.origins["architecture.hidden"];
}

void finish(Draft& draft) {
  Job& job = draft.job;
  // 0: no pipeline (or model) parallelism.
  if (job.parallel.pipeline == 0) job.parallel.pipeline = 1;
  if (job.parallel.tensor == 0) job.parallel.tensor = 1;
  if (const auto nodes = draft.fact_number("neox.nodes"); nodes && *nodes > 0)
    draft.set(job.devices.nodes, *nodes, "nodes", draft.fact("neox.nodes")->origin);
  if (job.objective == "normal") job.objective = "pretrain";
  if (draft.fact_truth("ds.fp16").value_or(false)) job.precision.autocast = "float16";
  name_model(draft);
}

constexpr DialectOf kBases[] = {deepspeed_dialect};
constexpr Dialect kDialect = {System::neox, "GPT-NeoX", kRules, kIrrelevant, kRenamed, kBases, nullptr, finish};

}  // namespace

const Dialect& neox_dialect() { return kDialect; }

}  // namespace headroom::doctor
