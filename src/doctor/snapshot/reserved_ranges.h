// The addresses that the allocator holds at each moment of the trace, from the final segments backwards.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "doctor/snapshot/snapshot.h"

namespace headroom::doctor {

struct ReservedRange {
  int64_t begin = 0, end = 0;
  int64_t stream = 0;
  PoolId pool{0, 0};
  bool large = true;
  bool expandable = false;
};

class ReservedRanges {
 public:
  // Starts with the state at the end.
  ReservedRanges(const Snapshot& snapshot, int64_t device);
  // Undoes one event of the trace; call from the last event to the first.
  void undo(const TraceEvent& event);
  const std::map<int64_t, ReservedRange>& ranges() const { return ranges_; }  // by begin

 private:
  void insert(ReservedRange range);
  void remove(int64_t begin, int64_t end);

  const Snapshot& snapshot_;
  std::map<int64_t, ReservedRange> ranges_;  // they do not overlap
};

}  // namespace headroom::doctor
