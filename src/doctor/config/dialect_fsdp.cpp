#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

constexpr KeyRule kRules[] = {
    {"fsdp_config.sharding_strategy", remember, "fsdp.strategy"},
    {"fsdp_config.reshard_after_forward", remember, "fsdp.reshard"},
    {"fsdp_config.version", set_extra, "extras.fsdp_version"},
    {"fsdp_config.offload_params", remember, "fsdp.offload"},
    {"fsdp_config.cpu_offload", remember, "fsdp.offload"},
    {"fsdp_config.backward_prefetch", set_backward_prefetch, "backward_prefetch"},
    {"fsdp_config.forward_prefetch", set_truth, "forward_prefetch"},
    {"fsdp_config.limit_all_gathers", set_truth, "limit_all_gathers"},
    {"fsdp_config.activation_checkpointing", remember, "fsdp.checkpointing"},
    {"fsdp_config.state_dict_type", set_extra, "extras.state_dict_type"},
    {"fsdp_config.final_state_dict_type", set_extra, "extras.state_dict_type"},
    {"fsdp_config.cpu_ram_efficient_loading", set_extra, "extras.cpu_ram_efficient_loading"},
    {"fsdp_config.sync_module_states", set_extra, "extras.sync_module_states"},
    {"fsdp_config.auto_wrap_policy", set_extra, "extras.wrap_policy"},
    {"fsdp_config.min_num_params", set_extra, "extras.wrap_min_parameters"},
    {"fsdp_config.transformer_layer_cls_to_wrap", set_extra, "extras.wrap_class"},
    {"fsdp_config.transformer_cls_names_to_wrap", set_extra, "extras.wrap_class"},
    {"fsdp_config.use_orig_params", set_extra, "extras.use_orig_params"},
    {"fsdp_config.cpu_offload_pin_memory", set_extra, "extras.offload_pin_memory"},
    {"fsdp_config.mixed_precision_policy*", set_extra, "extras.fsdp_precision"},
};

constexpr Irrelevant kIrrelevant[] = {
    {"names of modules to leave alone", "fsdp_config.ignored_modules fsdp_config.ignored_parameters"},
    {"only for TPUs",
     "fsdp_config.xla fsdp_config.xla_fsdp_v2 fsdp_config.xla_fsdp_settings* fsdp_config.xla_fsdp_grad_ckpt"},
};

constexpr Renamed kRenamed[] = {
    {"fsdp_config.backward_prefetch_policy", "fsdp_config.backward_prefetch",
     "Accelerate 0.24 and earlier wrote _policy"},
};

// fsdp_config.fsdp_x and accelerate launch's --fsdp_x become fsdp_config.x.
std::string rewrite(std::string_view path) {
  if (path.starts_with("fsdp_config.fsdp_")) return "fsdp_config." + std::string(path.substr(17));
  return std::string(path);
}

constexpr Dialect kDialect = {System::unknown, "FSDP", kRules, kIrrelevant, kRenamed, {}, rewrite, finish_fsdp};

}  // namespace

const Dialect& fsdp_dialect() { return kDialect; }

}  // namespace headroom::doctor
