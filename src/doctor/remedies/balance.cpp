#include "doctor/remedies/balance.h"

#include <algorithm>
#include <array>

namespace headroom::doctor {
namespace {

// A CUDA context with its libraries takes 0.3 to 0.6 GiB. Up to this much that an old message leaves unexplained is
// attributed to the process itself.
constexpr int64_t kOwnContext = int64_t{640} << 20;

bool contains(const std::vector<std::string>& list, std::string_view what) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& entry) { return entry.find(what) == 0; });
}

// Figures are rounded to a hundredth of a GiB; a difference of less than three of those counts as none.
constexpr int64_t kRounding = int64_t{32} << 20;

int64_t beyond_rounding(int64_t bytes) { return bytes < kRounding ? 0 : bytes; }

// A process in a container is listed under another id. The entry that holds what PyTorch reserved plus a context is
// this process; so is a single one that holds all that is not free, for this process has a context at least.
std::optional<int64_t> own_entry(const Message& message, const std::optional<int64_t>& reserved) {
  constexpr int64_t kLargestContext = int64_t{2} << 30;
  if (!reserved) {
    if (message.other_processes.size() != 1 || !message.free_bytes || !message.capacity_bytes) return std::nullopt;
    const std::optional<int64_t>& only = message.other_processes.front().bytes;
    return only && *only + *message.free_bytes >= *message.capacity_bytes - kRounding ? only : std::nullopt;
  }
  for (const OtherProcess& other : message.other_processes)
    if (other.bytes && *other.bytes >= *reserved - kRounding && *other.bytes <= *reserved + kLargestContext)
      return other.bytes;
  return std::nullopt;
}

// The bytes of other processes, if the message states this process's share or lists the processes.
std::optional<int64_t> foreign_bytes(const Message& message, const MessageFigures& figures) {
  std::optional<int64_t> foreign;
  for (const OtherProcess& other : message.other_processes) foreign = foreign.value_or(0) + other.bytes.value_or(0);
  if (foreign && !message.process_bytes && figures.process) *foreign -= *figures.process;
  if (figures.capacity && figures.free && figures.process)
    foreign = std::max(foreign.value_or(0), *figures.capacity - *figures.free - *figures.process);
  if (foreign) foreign = beyond_rounding(*foreign);
  return foreign;
}

}  // namespace

Pool pool_of(const Case& incident) {
  const Message* message = main_message(incident);
  if (!message) return Pool::device;
  if (contains(message->hints, "dev_shm") || contains(message->hints, "host_shm") ||
      contains(message->hints, "shared_memory") || message->text.find("/dev/shm") != std::string::npos ||
      message->text.find("shared memory") != std::string::npos)
    return Pool::shared_memory;
  constexpr std::array<std::string_view, 6> host{"linux-oom",  "slurm",       "launcher",
                                                 "kubernetes", "pytorch-cpu", "pytorch-dataloader"};
  if (std::find(host.begin(), host.end(), message->framework) != host.end()) return Pool::host;
  return message->phase == "host_ram" || contains(message->hints, "host_ram") ? Pool::host : Pool::device;
}

const Message* main_message(const Case& incident) {
  for (const Message& message : incident.messages)
    if (message.requested_bytes || message.allocated_bytes || message.kv_bytes_wanted) return &message;
  return incident.messages.empty() ? nullptr : &incident.messages.front();
}

MessageFigures figures_of(const Message& message) {
  MessageFigures f;
  f.capacity = message.capacity_bytes;
  f.requested = message.requested_bytes;
  f.free = message.free_bytes;
  f.allocated = message.allocated_bytes;
  f.unallocated = message.reserved_unallocated_bytes;
  f.reserved = message.reserved_bytes;
  f.process = message.process_bytes;
  if (!f.reserved && f.allocated && f.unallocated) f.reserved = *f.allocated + *f.unallocated;
  if (!f.unallocated && f.allocated && f.reserved) f.unallocated = std::max<int64_t>(0, *f.reserved - *f.allocated);
  if (f.capacity && f.free && f.reserved) f.outside_pytorch = std::max<int64_t>(0, *f.capacity - *f.free - *f.reserved);
  if (f.process && f.reserved && *f.process < *f.reserved / 2) f.process.reset();  // in a container the driver says 0
  if (!f.process) f.process = own_entry(message, f.reserved);
  if (f.process && f.reserved) f.own_outside = std::max<int64_t>(0, *f.process - *f.reserved);
  f.foreign = foreign_bytes(message, f);
  if (!f.foreign && f.outside_pytorch) f.unattributed = beyond_rounding(*f.outside_pytorch - kOwnContext);
  if (f.requested && f.free && *f.requested > *f.free) f.short_by = *f.requested - *f.free;
  if (f.requested && f.free && f.unallocated) f.after_defragment = *f.free + *f.unallocated - *f.requested;
  return f;
}

Balance balance_of(const Case& incident) {
  Balance balance;
  const Message* message = main_message(incident);
  const bool host = pool_of(incident) != Pool::device;
  balance.limit = incident.capacity_bytes;
  if (!host && !balance.limit && incident.gpu) balance.limit = incident.gpu->memory_bytes;
  if (message) {
    const MessageFigures f = figures_of(*message);
    if (!balance.limit) balance.limit = f.capacity;
    if (balance.limit && message->process_limit_bytes)
      balance.limit = std::min(*balance.limit, *message->process_limit_bytes);
    if (!host && balance.limit)
      *balance.limit = std::max<int64_t>(0, *balance.limit - f.foreign.value_or(f.unattributed.value_or(0)));
    if (f.allocated && f.requested)
      balance.observed = *f.allocated + *f.requested +
                         (host ? 0 : f.own_outside.value_or(std::min(f.outside_pytorch.value_or(0), kOwnContext)));
  }
  if (incident.estimate) {
    const int64_t processes = incident.job ? processes_per_node(*incident.job) : 1;
    balance.need = host ? incident.estimate->host_likely_bytes * processes : incident.estimate->likely_bytes;
    balance.need_from = Provenance::estimated;
  }
  if (balance.observed && balance.need) {
    balance.unexplained = std::max<int64_t>(0, *balance.observed - *balance.need);
    balance.need = *balance.need + balance.unexplained;
  } else if (balance.observed) {
    balance.need = balance.observed;
    balance.need_from = Provenance::computed;
  }
  return balance;
}

int64_t processes_per_node(const Job& job) {
  const int64_t gpus = job.devices.gpus.value_or(1), nodes = std::max<int64_t>(1, job.devices.nodes.value_or(1));
  return std::clamp<int64_t>(job.devices.grant.tasks_per_node.value_or((gpus + nodes - 1) / nodes), 1, 1024);
}

std::string_view provenance_name(Provenance provenance) {
  switch (provenance) {
    case Provenance::printed:
      return "printed";
    case Provenance::computed:
      return "computed";
    case Provenance::estimated:
      return "estimated";
    default:
      return "unknown";
  }
}

bool fits(int64_t need, int64_t limit) { return static_cast<double>(need) <= kFitShare * static_cast<double>(limit); }

}  // namespace headroom::doctor
