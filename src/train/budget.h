// What a run may take of the machine where no option says it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headroom {

// Bytes of memory that this process may use: the least of its cgroup's limit and what the machine has available.
int64_t available_memory();
// Throws Error(does_not_fit) for a budget, given by `option`, above available_memory(), compared in whole pages as the
// kernel keeps limits.
void refuse_above_machine(std::string_view option, int64_t budget);

// The default of --memory, in bytes: on the CPU available_memory() less 10 %; on a GPU what is free on it; for a plan
// without its GPU (device null, the profile of a GPU) what `profile` says that the GPU has, less 5 %. Throws
// Error(usage) when there is no such device or profile.
int64_t default_budget(const std::string& device, const std::string& profile);
// The default of --host-memory, in bytes: beside a GPU of this machine available_memory() less 10 %, else 0.
int64_t default_host_budget(const std::string& device);

}  // namespace headroom
