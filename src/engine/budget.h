// How much of the machine a run may use by default.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headroom {

// Bytes of memory that this process may use: the smaller of its cgroup's limit and the machine's available memory.
int64_t available_memory();
// The number of threads that this process can keep busy: the CPUs of its affinity, at most its cgroups' quota rounded
// up; at least 1.
int available_threads();

// The load of the machine without this process.
struct ProcessorLoad {
  int allowed = 1;    // available_threads()
  int machine = 1;    // CPUs that are online
  double wanted = 0;  // by others: the smaller of the running tasks and the last minute's mean
};
ProcessorLoad processor_load();

// A line with the remedy if a team of `threads` has more threads than CPUs, or needs CPUs that other programs keep
// busy, which costs most if waiting threads are `spinning`; else empty.
std::string thread_remark(int threads, const ProcessorLoad& load, bool spinning);

// Throws Error(does_not_fit) for a budget, given by `option`, above available_memory(), compared in whole pages like
// the kernel's limits.
void refuse_above_machine(std::string_view option, int64_t budget);

// The same for a run on `device` with `memory` bytes of it and `host_memory` bytes of the host.
void refuse_budgets_above_machine(const std::string& device, int64_t memory, int64_t host_memory);

// A note that the budget of a plan for `device` is above available_memory(); empty if it is not, or if the plan is not
// for the CPU.
std::string budget_remark(const std::string& device, int64_t budget);

// Throws Error(does_not_fit) for a budget, if one is given (above 0), below the bytes that a command needs.
void refuse_below(int64_t budget, int64_t needed);

// The default of --memory, in bytes: on the CPU 90 % of available_memory(); on a GPU the memory free on it, counting
// this process's own context as free if the driver reports it; for a plan without its GPU (device null, the profile of
// a GPU) the memory in `profile`, minus 5 %. Throws Error(usage) if there is no such device or profile.
int64_t default_budget(const std::string& device, const std::string& profile);
// The default of --host-memory, in bytes: with a GPU of this machine 90 % of available_memory(), else 0.
int64_t default_host_budget(const std::string& device);

}  // namespace headroom
