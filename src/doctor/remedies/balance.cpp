#include "doctor/remedies/balance.h"

#include <algorithm>
#include <array>

namespace headroom::doctor {
namespace {

// A CUDA context with its libraries takes 0.3 to 0.6 GiB; what an old message leaves unexplained up to this much is
// taken for the process's own.
constexpr int64_t kOwnContext = int64_t{640} << 20;

bool contains(const std::vector<std::string>& list, std::string_view what) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& entry) { return entry.find(what) == 0; });
}

std::optional<int64_t> stated_others(const Message& message) {
  if (message.other_processes.empty()) return std::nullopt;
  int64_t sum = 0;
  for (const OtherProcess& other : message.other_processes) sum += other.bytes.value_or(0);
  return sum;
}

std::optional<int64_t> foreign_bytes(const Message& message, const MessageFigures& figures) {
  std::optional<int64_t> foreign = stated_others(message);
  if (figures.capacity && figures.free && figures.process)
    foreign = std::max(foreign.value_or(0), *figures.capacity - *figures.free - *figures.process);
  else if (!foreign && figures.outside_pytorch)
    foreign = *figures.outside_pytorch - kOwnContext;
  if (foreign) foreign = std::max<int64_t>(0, *foreign);
  // Figures are rounded to a hundredth of a GiB each: below three of those it is nothing.
  if (foreign && *foreign < (int64_t{32} << 20)) foreign = 0;
  return foreign;
}

}  // namespace

Pool pool_of(const Case& incident) {
  const Message* message = main_message(incident);
  if (!message) return Pool::device;
  if (contains(message->hints, "dev_shm") || contains(message->hints, "host_shm") ||
      message->text.find("/dev/shm") != std::string::npos || message->text.find("shared memory") != std::string::npos)
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
  if (f.process && f.reserved) f.own_outside = std::max<int64_t>(0, *f.process - *f.reserved);
  f.foreign = foreign_bytes(message, f);
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
    if (!host && balance.limit) *balance.limit = std::max<int64_t>(0, *balance.limit - f.foreign.value_or(0));
    if (f.allocated && f.requested)
      balance.observed = *f.allocated + *f.requested +
                         (host ? 0 : f.own_outside.value_or(std::min(f.outside_pytorch.value_or(0), kOwnContext)));
  }
  if (incident.estimate) balance.need = host ? incident.estimate->host_likely_bytes : incident.estimate->likely_bytes;
  if (balance.observed && balance.need) {
    balance.unexplained = std::max<int64_t>(0, *balance.observed - *balance.need);
    balance.need = *balance.need + balance.unexplained;
  } else if (balance.observed) {
    balance.need = balance.observed;
  }
  return balance;
}

bool fits(int64_t need, int64_t limit) { return static_cast<double>(need) <= kFitShare * static_cast<double>(limit); }

}  // namespace headroom::doctor
