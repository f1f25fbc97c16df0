#include "doctor/messages/phase.h"

#include <string_view>

#include "doctor/messages/weight_code.h"

namespace headroom::doctor {
namespace {

template <typename Predicate>
bool any_of_list(std::string_view list, Predicate predicate) {
  while (!list.empty()) {
    const size_t bar = list.find('|');
    if (predicate(list.substr(0, bar))) return true;
    if (bar == std::string_view::npos) return false;
    list.remove_prefix(bar + 1);
  }
  return false;
}

bool name_matches(std::string_view name, std::string_view pattern) {
  const bool open_start = pattern.front() == '*';
  const bool open_end = pattern.back() == '*';
  if (open_start) pattern.remove_prefix(1);
  if (open_end) pattern.remove_suffix(1);
  if (open_start) return name.find(pattern) != std::string_view::npos;
  return open_end ? name.substr(0, pattern.size()) == pattern : name == pattern;
}

bool matches(const PhaseRule& rule, const Frame& frame) {
  const auto in_file = [&](std::string_view part) { return frame.file.find(part) != std::string::npos; };
  const auto is_function = [&](std::string_view pattern) { return name_matches(frame.function, pattern); };
  if (!rule.files.empty() && !any_of_list(rule.files, in_file)) return false;
  return rule.functions.empty() || any_of_list(rule.functions, is_function);
}

std::string describe(const Frame& frame) {
  const size_t slash = frame.file.find_last_of("/\\");
  const std::string file = slash == std::string::npos ? frame.file : frame.file.substr(slash + 1);
  if (frame.line < 0) return frame.function;
  return file + ":" + std::to_string(frame.line) + " in " + frame.function;
}

// What the innermost frame's source line does, when PyTorch's frames are missing.
struct CodeRule {
  std::string_view phase;
  std::string_view code;
};
constexpr CodeRule kCode[] = {{"backward", ".backward("},
                              {"optimizer_step", "optimizer.step("},
                              {"optimizer_step", "optim.step("},
                              {"checkpoint_save", "torch.save("},
                              {"checkpoint_save", ".save_pretrained("},
                              {"inference", ".generate("},
                              {"eval", "evaluate("},
                              {"eval", "validate("},
                              {"optimizer_step", "clip_grad_norm_("}};

// The frame that shows weights being read, made or moved: the innermost one, or one below which there are only
// constructors and conversions.
const Frame* load_frame(const std::vector<Frame>& frames) {
  constexpr std::string_view kMakes = "__init__|reset_parameters|init_weights|_init_weights",
                             kMoves = "cuda|to|half|float|bfloat16|_apply|convert|<lambda>|wrapped|wrapper|inner";
  for (size_t i = frames.size(); i-- > 0;) {
    const Frame& frame = frames[i];
    const auto is_function = [&](std::string_view name) { return frame.function == name; };
    const bool makes = any_of_list(kMakes, is_function);
    if (moves_weights(frame.code) || (makes && makes_weights(frame.code))) return &frame;
    if (!makes && !any_of_list(kMoves, is_function)) return nullptr;
  }
  return nullptr;
}

bool is_closure(const Frame& frame) {
  return frame.function == "closure" || frame.function == "_wrap_closure" || frame.function == "optimizer_closure";
}

std::vector<PhaseRule> make_rules() {
  return {
      {"cudagraph_capture", "graph|vllm|sglang|lmdeploy|tensorrt_llm", "*capture*", false},
      {"cudagraph_capture", "cuda_graph_runner|cudagraph_runner", "__init__|capture*", false},
      {"cudagraph_capture", "", "capture_model|capture_begin|init_cuda_graphs|init_device_graphs", false},
      {"serve_init", "",
       "determine_num_available_blocks|determine_available_memory|profile_run|profile_num_available_blocks|"
       "initialize_kv_cache|initialize_kv_caches|_initialize_kv_caches|init_kv_cache|init_memory_pool|"
       "allocate_kv_cache|_allocate_kv_cache*|initialize_cache|_init_cache_engine|init_cache_engine|_dummy_run|"
       "_dummy_sampler_run|warm_up_model|compile_or_warm_up_model|_profile_run",
       false},
      {"serve_init", "text_generation_server", "warmup|Warmup", false},
      {"comm_init", "",
       "init_process_group|init_distributed|_new_process_group_helper|ncclCommInitRank*|*initNCCLComm*", false},
      {"export", "torch/onnx|torch/export|optimum/exporters|onnx_export", "", false},
      {"quantize_calibration", "gptq|awq|llmcompressor|llm-compressor|modelopt|auto_round|hqq",
       "quantize*|oneshot|*calibrat*|compress|_quantize*", false},
      {"checkpoint_save", "",
       "save_checkpoint|_save_checkpoint|save_model|_save|save_pretrained|save_state|save_weights|_save_tpu|"
       "_save_optimizer_and_scheduler|save_adapter|on_save_checkpoint|dump_checkpoint|save_fsdp_model|"
       "_zero3_consolidated_16bit_state_dict|consolidate_state_dict|get_state_dict|get_model_state_dict|"
       "gather_state_dict|full_state_dict|get_full_state_dict|async_save|save_state_dict",
       false},
      {"checkpoint_save", "torch/serialization", "save|_save", false},
      {"checkpoint_save", "", "state_dict|_full_post_state_dict_hook|_full_pre_state_dict_hook", false},
      {"eval", "",
       "evaluate|_evaluate|evaluation_loop|prediction_step|prediction_loop|validate|_validate|validation_step|eval_"
       "step|"
       "evaluation_step|run_evaluation|run_validation|do_eval|test_step|simple_evaluate|_run_evaluate|eval_epoch|"
       "validate_epoch|evaluate_fn|_run_validation|run_eval|eval_model|evaluate_model|eval_one_epoch|val_step|val_loop|"
       "validation_epoch|evaluate_and_print_results|loglikelihood*|_loglikelihood*|eval_*|evaluat*|valid_*|validat*|"
       "test_epoch",
       false},
      {"optimizer_init", "",
       "_init_group|initialize_optimizer_states|_init_optimizer_states|init_state|_init_state|"
       "_create_slots|add_slot|build_slots|_lazy_init_optimizer",
       true},
      {"backward", "torch/autograd/__init__|torch/_tensor.py|torch/tensor.py|torch/autograd/graph", "*backward*",
       false},
      {"backward", "",
       "backward|_backward*|manual_backward|backward_step|run_backward|training_backward|call_backward|"
       "*autograd::Engine*|*_backward_cuda*|*::backward*|CompiledFunctionBackward|_engine_run_backward",
       false},
      {"backward", "torch/utils/checkpoint", "unpack_hook|recompute_fn|backward|unpack", false},
      {"optimizer_step", "/optim/|optim.py|optimizer|grad_scaler|/zero/stage|bitsandbytes/optim|apex/optimizers|optim/",
       "step|_step|*_step|"
       "*adam*|*_tensor_*|update_step|optimizer_update|_maybe_opt_step|unscale_|step_param|single_tensor*",
       true},
      {"optimizer_step", "",
       "optimizer_step|_optimizer_step|_take_model_step|clip_grad_norm_|clip_grad_norm|"
       "clip_gradients|apply_gradients|_apply_gradients|_clip_gradients|_clip_grad_norm",
       true},
      {"compile", "torch/_inductor|torch/_dynamo|triton",
       "do_bench*|autotune*|benchmark*|*autotune_process*|"
       "compile_fx*|_compile|compile_inner|bench|_bench",
       false},
      {"compile", "jax/_src/compiler|jax/_src/interpreters",
       "backend_compile*|compile_or_get_cached|_cached_compilation|"
       "compile",
       false},
      {"prefill", "sglang|vllm|text_generation_server|lmdeploy|mlx_lm",
       "prefill|forward_extend|forward_batch_extend|*prefill*", false},
      {"serve", "sglang|vllm|text_generation_server|lmdeploy|tensorrt_llm",
       "execute_model|forward_decode|forward_batch_generation|run_batch|decode|generate_token|step|run_engine_core|"
       "_process_engine_step|process_batch*",
       false},
      {"data", "torch/utils/data|dataloader|data_loader|/datasets/",
       "__next__|_next_data|fetch|__getitem__|collate*|pin_memory|"
       "_worker_loop|_get_iterator|__getitems__",
       false},
      {"data", "", "__getitem__|collate_fn|_pin_memory_loop", false},
      {"load", "",
       "from_pretrained|load_state_dict|_load_pretrained_model|load_model|load_weights|load_checkpoint|_load_"
       "checkpoint|"
       "load_adapter|_load_state_dict_into*|set_module_tensor_to_device|load_checkpoint_and_dispatch|dispatch_model|"
       "get_peft_model|_create_and_replace|resize_token_embeddings|load_pretrained_model|_materialize*|load_file|"
       "_load_from_state_dict|load_shard|load_model_from_config|load_checkpoint_in_model|_load_parameter_into_model|"
       "_auto_wrap|_init_param_handle*|fully_shard|load_unet|create_quantized_param|_load_into*|initialize_model|"
       "load_torch_file|convert_and_load_state_dict*|prepare_model*|_prepare_fsdp2|load_lora*|load_model*|load_"
       "pretrained*|"
       "load_quant*|load_llm*|load_pipe*|load_tokenizer_and_model*|init_model*|setup_model|get_model|build_model|"
       "create_model",
       false},
      {"load", "torch/serialization",
       "load|_load|restore_location|default_restore_location|load_tensor|persistent_load", false},
      {"load", "torch/nn/modules/module.py", "_apply|cuda|to|half|bfloat16|float|convert|to_empty", false},
      {"init", "deepspeed", "initialize|__init__|_configure_distributed_model|_configure_zero_optimizer", false},
      {"inference", "",
       "generate|_sample|greedy_search|_greedy_search|_beam_search|sample|beam_search|stream_generate|"
       "predict|infer|inference|run_inference|diffuse|txt2img|img2img|decode_first_stage|predict_step|denoise|"
       "process_images|vae_decode|transcribe",
       false},
      {"inference", "/pipelines/|diffusers", "__call__|run_single", false},
      {"forward", "",
       "forward|_call_impl|_wrapped_call_impl|compute_loss|_compute_loss|forward_step|training_forward|_forward*|"
       "call_module|_run_ddp_forward|*_forward_cuda*|*::forward*|*_forward_fn|*_forward",
       false},
      {"forward", "torch/nn/functional|torch/nn/modules/|/modeling_|loss/loss_utils|flash_attn/", "", false},
      {"comm", "distributed_c10d|torch/distributed/",
       "all_reduce|all_gather*|broadcast*|reduce_scatter*|_all_gather*|"
       "all_to_all*|gather*|scatter*|barrier|send|recv",
       false},
      {"training", "",
       "training_step|train|fit|_inner_training_loop|inner_training_loop|train_one_epoch|train_epoch|train_step|"
       "train_batch|fit_loop|run_training|train_model|do_train|main_train|training_loop|train_loop|_train|finetune|"
       "pretrain|train_function|fit_generator|train_on_batch|run_epoch|trainer_loop",
       false},
      {"compile", "jax/_src", "*compile*", false},
  };
}

}  // namespace

const std::vector<PhaseRule>& phase_rules() {
  static const std::vector<PhaseRule> rules = make_rules();
  return rules;
}

Phase phase_of(const std::vector<Frame>& frames) {
  if (frames.empty()) return {};
  size_t closure = 0;  // first frame inside the innermost closure
  for (size_t i = 0; i < frames.size(); ++i) {
    if (is_closure(frames[i])) closure = i + 1;
  }
  const Frame& innermost = frames.back();
  const auto rule_of = [&](const PhaseRule& rule) -> const Frame* {
    for (size_t i = frames.size(); i-- > (rule.after_closure ? closure : 0);) {
      const bool both = rule.phase == "backward" && frames[i].function.find("forward") != std::string::npos;
      if (!both && matches(rule, frames[i])) return &frames[i];
    }
    return nullptr;
  };
  Phase weak;
  for (const PhaseRule& rule : phase_rules()) {
    const Frame* frame = rule_of(rule);
    if (frame == nullptr) continue;
    const bool general = rule.phase == "training" || rule.phase == "forward" || rule.phase == "inference";
    if (!general) return {std::string(rule.phase), describe(*frame)};
    weak = {std::string(rule.phase), describe(*frame)};
    break;
  }
  if (const Frame* load = load_frame(frames)) return {"load", load->code};
  for (const CodeRule& rule : kCode) {
    if (innermost.code.find(rule.code) != std::string::npos) return {std::string(rule.phase), innermost.code};
  }
  return weak;
}

}  // namespace headroom::doctor
