// Options for the host: data loaders, loading, saving, limits of the scheduler.
#include "doctor/remedies/option_tables.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum OptionLine::Form;

constexpr OptionLine kLines[] = {
    {"fewer-workers", hf_trainer, keys, "dataloader_num_workers={workers}"},
    {"fewer-workers", oumi, keys, "training.dataloader_num_workers={workers}"},
    {"fewer-workers", litgpt, keys, "data.init_args.num_workers={workers}"},
    {"fewer-workers", neox, keys, "num_workers={workers}"},
    {"fewer-workers", torchtune, missing, "torchtune's recipes load the data in the training process"},
    {"fewer-workers", pytorch_script, text, "DataLoader(..., num_workers={workers})"},
    {"pageable-memory", hf_trainer, keys, "dataloader_pin_memory=False"},
    {"pageable-memory", oumi, missing, "Oumi sets dataloader_pin_memory itself"},
    {"pageable-memory", pytorch_script, text, "DataLoader(..., pin_memory=False)"},
    {"shared-memory", pytorch_script, text,
     "docker run --ipc=host or --shm-size=16g; Kubernetes: emptyDir {medium: Memory} on /dev/shm"},
    {"host-memory", pytorch_script, text, "host memory (RAM) of {gib} GiB"},
    {"lean-load", hf_trainer, text, "from_pretrained(..., low_cpu_mem_usage=True) with safetensors weights"},
    {"lean-load", accelerate, keys,
     "fsdp_config.fsdp_cpu_ram_efficient_loading=True; fsdp_config.fsdp_sync_module_states=True"},
    {"lean-load", pytorch_script, text,
     "from_pretrained(..., low_cpu_mem_usage=True); torch.load(file, mmap=True, map_location=\"cpu\"), assign=True"},
    {"sharded-save", hf_trainer, text, "fsdp_config={\"state_dict_type\": \"SHARDED_STATE_DICT\"}"},
    {"sharded-save", oumi, keys, "fsdp.state_dict_type=SHARDED_STATE_DICT"},
    {"sharded-save", accelerate, keys, "fsdp_config.fsdp_state_dict_type=SHARDED_STATE_DICT"},
    {"sharded-save", deepspeed, text, "\"stage3_gather_16bit_weights_on_model_save\": false, then zero_to_fp32.py"},
    {"sharded-save", pytorch_script, text,
     "torch.distributed.checkpoint.save(...) instead of gathering on one process"},
    {"other-version", pytorch_script, text, "another release of the program or of its library"},
    {"measure", pytorch_script, text,
     "torch.cuda.memory._record_memory_history(); ...; torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")"},
};

}  // namespace

std::span<const OptionLine> host_options() { return kLines; }

}  // namespace headroom::doctor
