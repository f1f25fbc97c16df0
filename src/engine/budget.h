// How much of the machine a run may use where no option says so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headroom {

// Bytes of memory that this process may use: the least of its cgroup's limit and what the machine has available.
int64_t available_memory();
// The size of a team that this process can keep busy: the CPUs of its affinity, at most its cgroups' quota rounded up;
// at least 1.
int available_threads();

// How busy the machine is without this process.
struct ProcessorLoad {
  int allowed = 1;    // available_threads()
  int machine = 1;    // CPUs that are online
  double wanted = 0;  // by others: the smaller of the tasks that run now and the last minute's mean
};
ProcessorLoad processor_load();

// A line with the remedy where a team of `threads` has more threads than CPUs, or needs CPUs that others keep busy,
// which costs most if waiting threads are `spinning`; else empty.
std::string thread_remark(int threads, const ProcessorLoad& load, bool spinning);

// Throws Error(does_not_fit) for a budget, given by `option`, above available_memory(), compared in whole pages as the
// kernel keeps limits.
void refuse_above_machine(std::string_view option, int64_t budget);

// The same of a run on `device` with `memory` bytes of it and `host_memory` beside it.
void refuse_budgets_above_machine(const std::string& device, int64_t memory, int64_t host_memory);

// A note that the budget of a plan for `device` is above available_memory(); empty where it is not, or the plan is not
// for the CPU.
std::string budget_remark(const std::string& device, int64_t budget);

// Throws Error(does_not_fit) for a budget, where one is given (above 0), below the bytes that a command needs.
void refuse_below(int64_t budget, int64_t needed);

// The default of --memory, in bytes: on the CPU 90 % of available_memory(); on a GPU what is free on it, this
// process's own context counted as free as far as the driver tells it; for a plan without its GPU (device null, the
// profile of a GPU) what `profile` says that the GPU has, minus 5 %. Throws Error(usage) when there is no such device
// or profile.
int64_t default_budget(const std::string& device, const std::string& profile);
// The default of --host-memory, in bytes: beside a GPU of this machine 90 % of available_memory(), else 0.
int64_t default_host_budget(const std::string& device);

}  // namespace headroom
