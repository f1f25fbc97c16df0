// What a job wants against what it may have, from the message and the memory model together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

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
  std::optional<int64_t> foreign;           // held by other processes, as far as stated or implied
  std::optional<int64_t> short_by;          // requested - free, where positive
  std::optional<int64_t> after_defragment;  // free + unallocated - requested; negative: not even that would serve it
};
MessageFigures figures_of(const Message& message);

// limit: what the job may have; need: what it wants at its peak.
struct Balance {
  std::optional<int64_t> limit;
  std::optional<int64_t> need;      // likely
  std::optional<int64_t> observed;  // at least this was wanted when the message came
  int64_t unexplained = 0;          // observed above the estimate: kept when the job changes
};
Balance balance_of(const Case& incident);

// The share of the limit that an estimate may take to count as fitting: the estimate is no exact figure.
constexpr double kFitShare = 0.97;
bool fits(int64_t need, int64_t limit);

}  // namespace headroom::doctor
