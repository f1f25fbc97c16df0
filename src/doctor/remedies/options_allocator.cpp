// Settings of the caching allocator, and other processes on the device.
#include "doctor/remedies/option_tables.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum OptionLine::Form;

constexpr OptionLine kLines[] = {
    {"expandable-segments", pytorch_script, text, "export {allocator}=expandable_segments:True"},
    {"max-split-size", pytorch_script, text, "export {allocator}=max_split_size_mb:{mb}"},
    {"empty-cache", hf_trainer, keys, "torch_empty_cache_steps={steps}"},
    {"empty-cache", axolotl, keys, "torch_empty_cache_steps={steps}"},
    {"empty-cache", oumi, keys, "training.empty_device_cache_steps={steps}"},
    {"empty-cache", pytorch_script, text, "torch.cuda.empty_cache() every {steps} steps"},
    {"own-allocator", pytorch_script, text, "export PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync"},
    {"grow-on-demand", pytorch_script, missing, "PyTorch takes memory as it needs it"},
    {"end-other-processes", pytorch_script, text, "{kill}"},
};

}  // namespace

std::span<const OptionLine> allocator_options() { return kLines; }

}  // namespace headroom::doctor
