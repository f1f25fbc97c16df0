#include "doctor/snapshot/memory_class.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "doctor/snapshot/frame_origin.h"

namespace headroom::doctor {
namespace {

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool holds_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return holds(text, part); });
}

bool is_any(std::string_view text, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

// What a frame tells about the allocations below it.
struct FrameHint {
  MemoryClass kind = MemoryClass::other;  // other: nothing
  bool second_forward = false;            // a forward pass further inside is a recomputation
};

FrameHint hint_of_native(std::string_view function) {
  if (holds_any(function, {"CUDABlasHandle", "BlasLtWorkspace", "blasWorkspace", "getWorkspace"}))
    return {MemoryClass::workspaces};
  if (holds_any(function, {"c10d::", "Reducer::"})) return {MemoryClass::sharding};
  if (holds_any(function, {"autograd::Engine", "autograd::python::PythonEngine"}) || holds(function, "Backward"))
    return {MemoryClass::gradients, true};
  return {};
}

bool is_optimizer_file(std::string_view file) {
  return holds_any(file, {"torch/optim/", "bitsandbytes/optim", "apex/optimizers", "torchao/optim", "ops/adam",
                          "ops/lamb", "ops/lion", "transformers/optimization.py", "optimizers/", "galore_torch",
                          "torch_optimizer/", "lomo_optim"}) &&
         !holds_any(file, {"lr_scheduler", "swa_utils"});
}

FrameHint hint_of_optimizer(std::string_view function) {
  if (is_any(function, {"_init_group", "init_group", "_init_state", "init_state", "get_state_buffer", "_init_states",
                        "initialize_optimizer_states", "_initialize_state"}))
    return {MemoryClass::optimizer_state};
  if (is_any(function, {"__init__", "zero_grad", "add_param_group", "load_state_dict",
                        "_process_value_according_to_param_policy"}))
    return {holds(function, "load_state_dict") || holds(function, "_process_value") ? MemoryClass::optimizer_state
                                                                                    : MemoryClass::other};
  return {MemoryClass::optimizer_step};
}

bool is_loading(std::string_view file, std::string_view function) {
  if (holds(file, "torch/nn/modules/"))
    return is_any(function, {"__init__", "reset_parameters", "convert", "_apply", "to", "cuda", "half", "bfloat16",
                             "float", "to_empty", "load_state_dict", "_load_from_state_dict"});
  if (holds_any(file, {"torch/serialization.py", "safetensors/torch.py", "torch/nn/init.py", "model_loader/"}))
    return true;
  return is_any(function,
                {"from_pretrained", "_load_pretrained_model", "load_state_dict", "load_weights", "load_model",
                 "_load_state_dict_into_meta_model", "_load_parameter_into_model", "set_module_tensor_to_device",
                 "load_checkpoint_in_model", "load_checkpoint", "_materialize_copy", "dispatch_model",
                 "create_quantized_param", "_replace_with_bnb_linear"});
}

FrameHint hint_of(const StackFrame& frame) {
  if (frame_origin(frame) == FrameOrigin::native) return hint_of_native(frame.function);
  std::string file = frame.file;
  std::replace(file.begin(), file.end(), '\\', '/');
  const std::string_view function = frame.function;
  if (is_optimizer_file(file)) return hint_of_optimizer(function);
  if (holds(file, "torch/utils/checkpoint.py") && is_any(function, {"unpack_hook", "recompute_fn", "backward"}))
    return {MemoryClass::gradients, true};
  if (holds_any(file, {"cache_utils.py", "kv_cache", "cache_engine", "memory_pool.py"}) || holds(function, "kv_cache"))
    return {MemoryClass::kv_cache};
  const bool tensor_dispatch = holds_any(file, {"torch/distributed/tensor/", "torch/distributed/_tensor/"});
  if (!tensor_dispatch &&
      holds_any(file, {"torch/nn/parallel/", "torch/distributed/", "runtime/zero/", "fairscale/", "core/distributed/"}))
    return {MemoryClass::sharding};
  if (is_loading(file, function)) return {MemoryClass::weights};
  if (is_any(function,
             {"pin_memory", "send_to_device", "_prepare_inputs", "_prepare_input", "move_to_device", "batch_to_device",
              "transfer_batch_to_device", "_move_dict_value_to_device", "move_data_to_device"}) ||
      holds(file, "torch/utils/data/"))
    return {MemoryClass::inputs};
  if (is_any(function, {"backward", "_engine_run_backward", "run_backward"})) return {MemoryClass::gradients, true};
  if (holds_any(function, {"cross_entropy", "CrossEntropy", "LMLoss", "nll_loss", "kl_div"}) ||
      (holds(file, "torch/nn/modules/loss.py") && function == "forward"))
    return {MemoryClass::loss};
  if (function.substr(0, 7) == "forward") return {MemoryClass::activations};
  if (holds(file, "torch/nn/modules/module.py") && holds(function, "_call_impl")) return {MemoryClass::activations};
  return {};
}

// The innermost frame that tells something decides. A forward pass inside a backward pass is a recomputation.
MemoryClass class_of(const std::vector<uint32_t>& stack, const std::vector<FrameHint>& hints) {
  MemoryClass kind = MemoryClass::other;
  for (const uint32_t number : stack) {
    if (kind == MemoryClass::other) kind = hints[number].kind;
    const bool forward = kind == MemoryClass::activations || kind == MemoryClass::loss;
    if (forward && hints[number].second_forward) return MemoryClass::recomputed;
  }
  return kind;
}

struct ClassNames {
  const char* name;
  const char* title;
};

// In the order of MemoryClass.
constexpr std::array<ClassNames, kMemoryClasses> kNames{{
    {"weights", "weights"},
    {"optimizer_state", "optimizer state"},
    {"optimizer_step", "optimizer step"},
    {"activations", "activations (forward)"},
    {"loss", "loss"},
    {"recomputed", "recomputed activations"},
    {"gradients", "gradients (backward)"},
    {"sharding", "sharding, collectives"},
    {"inputs", "inputs"},
    {"kv_cache", "key-value cache"},
    {"workspaces", "library workspaces"},
    {"other", "other code"},
    {"before_recording", "before the recording"},
    {"unknown", "no stack recorded"},
}};

}  // namespace

const char* memory_class_title(MemoryClass kind) { return kNames[static_cast<size_t>(kind)].title; }
const char* memory_class_name(MemoryClass kind) { return kNames[static_cast<size_t>(kind)].name; }

std::vector<MemoryClass> classify_stacks(const StackTable& stacks) {
  std::vector<FrameHint> hints;
  hints.reserve(stacks.frames.size());
  for (const StackFrame& frame : stacks.frames) hints.push_back(hint_of(frame));
  std::vector<MemoryClass> classes;
  classes.reserve(stacks.stacks.size());
  for (const auto& stack : stacks.stacks) classes.push_back(class_of(stack, hints));
  const bool forward = std::find(classes.begin(), classes.end(), MemoryClass::activations) != classes.end();
  classes[StackTable::kNone] = forward ? MemoryClass::gradients : MemoryClass::unknown;
  return classes;
}

}  // namespace headroom::doctor
