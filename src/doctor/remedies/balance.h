// What a job wants against what it may have, from the message and the memory model together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "doctor/remedies/remedy.h"

namespace headroom::doctor {

// Which memory ran out.
enum class Pool { device, host, shared_memory };
Pool pool_of(const Case& incident);

// The message that the answer is about: the first with figures, else the first; null without messages.
const Message* main_message(const Case& incident);

// The figures of a device message put in relation. Absent where the message does not allow to compute them.
struct MessageFigures {
  std::optional<int64_t> capacity, requested, free, allocated, unallocated, reserved, process;
  std::optional<int64_t> outside_pytorch;   // capacity - free - reserved: context, libraries, other processes
  std::optional<int64_t> own_outside;       // the part of this process: process - reserved
  std::optional<int64_t> foreign;           // held by other processes, as the message states
  std::optional<int64_t> unattributed;      // beyond the allocator and a context, where nothing says whose it is
  std::optional<int64_t> short_by;          // requested - free, where positive
  std::optional<int64_t> after_defragment;  // free + unallocated - requested; negative: not even that would serve it
};
MessageFigures figures_of(const Message& message);

// Where a figure comes from.
enum class Provenance { unknown, printed, computed, estimated };
std::string_view provenance_name(Provenance provenance);

// limit: what the job may have; need: what it wants at its peak; of the host, that of all processes of a node.
struct Balance {
  std::optional<int64_t> limit;
  std::optional<int64_t> need;      // likely
  std::optional<int64_t> observed;  // at least this was wanted when the message came
  int64_t unexplained = 0;          // observed above the estimate: kept when the job changes
  Provenance need_from = Provenance::unknown;
};
Balance balance_of(const Case& incident);

// Processes of the job on one node: each has host memory of its own.
int64_t processes_per_node(const Job& job);

// The share of the limit that an estimate may take to count as fitting: the estimate is not an exact figure.
constexpr double kFitShare = 0.97;
bool fits(int64_t need, int64_t limit);

}  // namespace headroom::doctor
