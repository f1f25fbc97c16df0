// Turns lists of frame dictionaries into a StackTable.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "doctor/snapshot/snapshot.h"
#include "formats/pickle_document.h"

namespace headroom::doctor {

// Reads each list and each frame of the document once, however often events refer to it. Lists of equal frames become
// one stack; compared by a 64-bit hash.
class StackReader {
 public:
  explicit StackReader(const PickleDocument& document);

  // The index of the stack for the list `frames`; kNone when it is not a list or contains anything but frames.
  uint32_t stack(PickleValue frames);
  StackTable take() { return std::move(table_); }

 private:
  // The frame's index plus one; 0 when `frame` is not a frame.
  uint32_t frame(PickleValue frame);

  const PickleDocument& document_;
  std::optional<PickleValue> filename_, name_, line_;
  StackTable table_;
  std::vector<uint32_t> known_;  // by container: the index of its stack or frame, plus one
  std::map<uint64_t, uint32_t> frames_by_hash_, stacks_by_hash_;
};

}  // namespace headroom::doctor
