// Lists of frame dictionaries turned into a StackTable.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "doctor/snapshot/snapshot.h"
#include "formats/pickle_document.h"

namespace headroom::doctor {

// Each list and each frame of the document is read once, however often events refer to it; lists of equal frames become
// one stack, told apart by 64 bits of hash.
class StackReader {
 public:
  explicit StackReader(const PickleDocument& document);

  // The number of the stack of `frames`, a list; what is not a list or holds anything but frames gives kNone.
  uint32_t stack(PickleValue frames);
  StackTable take() { return std::move(table_); }

 private:
  // The number of the frame plus one, or 0 when `frame` is not a frame.
  uint32_t frame(PickleValue frame);

  const PickleDocument& document_;
  std::optional<PickleValue> filename_, name_, line_;
  StackTable table_;
  std::vector<uint32_t> known_;  // by container: the number of its stack or frame plus one
  std::map<uint64_t, uint32_t> frames_by_hash_, stacks_by_hash_;
};

}  // namespace headroom::doctor
