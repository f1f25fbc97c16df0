// What a job needs and what it may use, from the message and the memory model together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "doctor/remedies/remedy.h"

namespace headroom::doctor {

// The memory that ran out.
enum class Pool { device, host, shared_memory };
Pool pool_of(const Case& incident);

// The message that the answer is about: the first one with figures, else the first one. Null without messages.
const Message* main_message(const Case& incident);

// Figures derived from a device message. Absent where the message has too few to compute them.
struct MessageFigures {
  std::optional<int64_t> capacity, requested, free, allocated, unallocated, reserved, process;
  std::optional<int64_t> outside_pytorch;   // capacity - free - reserved: context, libraries, other processes
  std::optional<int64_t> own_outside;       // this process's part of it: process - reserved
  std::optional<int64_t> foreign;           // held by other processes, by the message
  std::optional<int64_t> unattributed;      // beyond the allocator and a context, when no process is named
  std::optional<int64_t> short_by;          // requested - free, where positive
  std::optional<int64_t> after_defragment;  // free + unallocated - requested; negative: defragmenting is not enough
};
MessageFigures figures_of(const Message& message);

// Where a figure comes from.
enum class Provenance { unknown, printed, computed, estimated };
std::string_view provenance_name(Provenance provenance);

// limit: what the job may use. need: its peak. For host memory, that of all processes of a node.
struct Balance {
  std::optional<int64_t> limit;
  std::optional<int64_t> need;      // likely
  std::optional<int64_t> observed;  // at least this much was needed when the message was printed
  int64_t unexplained = 0;          // observed minus estimated; carried over when the job changes
  Provenance need_from = Provenance::unknown;
};
Balance balance_of(const Case& incident);

// The job's processes on one node; each has its own host memory.
int64_t processes_per_node(const Job& job);

// The share of the limit that an estimate may take and still count as fitting, since it is not exact.
constexpr double kFitShare = 0.97;
bool fits(int64_t need, int64_t limit);

}  // namespace headroom::doctor
