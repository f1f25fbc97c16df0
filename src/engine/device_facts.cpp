#include "engine/device_facts.h"

#include <algorithm>

#include "base/error.h"
#include "device/device.h"
#include "engine/budget.h"
#include "planner/estimates.h"

namespace headroom {
namespace {

DeviceFacts machine_facts(int threads) { return cpu_facts(threads > 0 ? threads : available_threads()); }

// For a profile of a CPU: its own facts if it is named.
DeviceFacts facts_on_cpu(const MachineOptions& options, const Profile& profile) {
  if (options.profile.empty()) return machine_facts(options.threads);
  DeviceFacts facts = profile.facts;
  if (options.threads > 0) facts.threads = options.threads;
  if (!options.runs_here || device_kind(options.device) != DeviceKind::cpu) return facts;
  const DeviceFacts machine = machine_facts(options.threads);
  facts.capabilities = facts.capabilities.shared_with(machine.capabilities);
  facts.native_bf16 = facts.native_bf16 && machine.native_bf16;
  return facts;
}

DeviceFacts facts_on_accelerator(const MachineOptions& options, Profile& profile) {
  if (!profile.facts.is_cpu()) return profile.facts;
  if (options.profile.empty()) {  // no measured profile: a shipped profile's rates, the device's own facts
    profile = load_profile(kUnmeasuredGpu);
    return facts_of_device(options.device, options.threads);
  }
  throw Error(
      ErrorKind::usage,
      fmt::format("--device {}: profile {} describes a {} device", options.device, profile.name, profile.facts.device),
      fmt::format("measure the GPU with `headroom profile --device cuda:0`, or give a shipped profile of a GPU: {}",
                  kUnmeasuredGpu));
}

}  // namespace

DeviceFacts device_facts(const MachineOptions& options, Profile& profile) {
  const DeviceKind kind = device_kind(options.device);
  profile = choose_profile(options.profile, cpu_facts(1), accelerator_label(options.device));
  if (kind == DeviceKind::accelerator) return facts_on_accelerator(options, profile);
  if (profile.facts.is_cpu()) return facts_on_cpu(options, profile);
  if (kind == DeviceKind::null) return profile.facts;
  throw Error(ErrorKind::usage,
              fmt::format("profile {} describes a {} device, not the cpu", profile.name, profile.facts.device),
              "add --device null to plan for it");
}

std::string planning_device(const MachineOptions& options) {
  const bool described = device_kind(options.device) == DeviceKind::cpu && !options.profile.empty();
  return described && !load_profile(options.profile).facts.is_cpu() ? "null" : options.device;
}

std::string profile_remark(const MachineOptions& options, const PlanRequest& request) {
  if (options.profile.empty() || device_kind(options.device) != DeviceKind::cpu) return {};
  const Profile& profile = request.profile;
  if (!request.facts.capabilities.cover(profile.facts.capabilities))
    return fmt::format(
        "note: profile {} describes {}, but this machine has {}: the plan is made for this machine, so bytes and "
        "seconds "
        "are not those of `plan --profile {}`; `headroom profile -o FILE` measures this machine",
        profile.name, describe_capabilities(profile.facts), describe_capabilities(request.facts), profile.name);
  const int usable = available_threads();
  if (options.threads == 0 && request.facts.threads < usable)
    return fmt::format("note: {} thread{}, as profile {} describes: --threads {} uses every CPU of this process",
                       request.facts.threads, request.facts.threads == 1 ? "" : "s", profile.name, usable);
  return {};
}

}  // namespace headroom
