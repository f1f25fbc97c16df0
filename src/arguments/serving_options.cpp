#include "arguments/serving_options.h"

#include "arguments/inference_options.h"
#include "arguments/lora_slot_options.h"
#include "base/error.h"
#include "device/device.h"
#include "engine/budget.h"
#include "engine/lora_modules.h"

namespace headroom {
namespace {

// A share of the machine's memory: of what is free on a GPU, or of what this process may use on the CPU.
int64_t share_of_memory(double share, const MachineOptions& machine) {
  const bool cpu = device_kind(machine.device) == DeviceKind::cpu;
  const int64_t all = cpu ? available_memory() : default_budget(machine.device, machine.profile);
  return static_cast<int64_t>(share * static_cast<double>(all));
}

}  // namespace

void add_serving_sizes(CLI::App& app, ServingArguments& a) {
  constexpr const char* kGroup = "Sizes of serving";
  ServingOptions& s = a.serving;
  scalar(app, "--max-model-len", s.max_model_len,
         "tokens of one sequence, prompt and answer (default: the model's positions, or as many as fit)")
      ->group(kGroup);
  scalar(app, "--max-num-seqs", s.max_num_seqs, "sequences computed together (default: 32, or as many as fit)")
      ->group(kGroup);
  scalar(app, "--max-num-batched-tokens", s.max_num_batched_tokens,
         "tokens of one step, of prompts and answers (default: 256, or as many as fit)")
      ->group(kGroup);
  scalar(app, "--block-size", s.block_size, "tokens of a block of the KV cache: 1, 2, 4, ... 128")
      ->capture_default_str()
      ->group(kGroup);
  scalar(app, "--kv-cache-dtype", s.kv_cache_dtype,
         "auto (the type of --precision), f32, bf16 or f16; int8 is lossy: codes and a scale for each head and token")
      ->capture_default_str()
      ->group(kGroup);
  scalar(app, "--admission", s.admission,
         "guaranteed: a request is admitted once its prompt and max_tokens fit; balanced: admitted when its expected "
         "length fits; sequences that outgrow the pool are parked")
      ->capture_default_str()
      ->group(kGroup);
  memory_option(
      app, "--park-memory", a.park_memory,
      "size of the park area: on disk with --disk-memory (default: what weights leave), else in memory (default: "
      "one sequence of --max-model-len)")
      ->group(kGroup);
  scalar(app, "--gpu-memory-utilization", a.memory_share,
         "without --memory: share of the free memory to use, above 0, at most 1 (default: 0.9)")
      ->group(kGroup);
  add_lora_slot_options(app, s.lora, a.lora_modules);
}

void add_serving_options(CLI::App& app, ServingArguments& a) {
  add_inference_options(app, a.options, a.tiers, "32-true; bf16-true or 16-true: weights and cache in 16 bits");
  app.add_flag("--quiet", a.quiet, "no notes");
  add_serving_sizes(app, a);
}

std::string resolve_serving(ServingArguments& a) {
  resolve_tiers(a.tiers, a.options.machine, a.options.techniques);
  a.serving.lora.adapters = parse_lora_modules(a.lora_modules);
  if (a.park_memory > 0) a.serving.park_memory = a.park_memory;
  if (a.memory_share == 0) return {};
  if (!(a.memory_share > 0 && a.memory_share <= 1))
    throw Error(ErrorKind::usage, fmt::format("--gpu-memory-utilization {} is out of range", a.memory_share),
                "give a share above 0 up to 1, or --memory");
  if (a.options.machine.memory > 0) return "note: --gpu-memory-utilization is ignored because --memory is given";
  a.options.machine.memory = share_of_memory(a.memory_share, a.options.machine);
  return {};
}

}  // namespace headroom
