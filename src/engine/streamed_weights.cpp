#include "engine/streamed_weights.h"

#include <algorithm>
#include <vector>

#include "plan/storage_spans.h"

namespace headroom {
namespace {

int64_t copied_bytes(const PlanProgram& program) {
  int64_t bytes = 0;
  for (const Instruction& instruction : program.instructions)
    if (instruction.op && instruction.op->kind() == OpKind::copy_start)
      if (const Operand& from = operand(instruction, "x"); from.tier != Tier::device) bytes += storage_bytes(from.type);
  return bytes;
}

// The most bytes of weights on the device at once that are not persistent: they are in windows.
int64_t most_windows(const Plan& plan, const PlanProgram& program) {
  std::vector<int64_t> change(program.instructions.size() + 1, 0);
  for (const StorageSpan& span : storage_spans(plan, program)) {
    if (span.persistent || span.kind != MemoryClass::weights) continue;
    change[static_cast<size_t>(span.begin)] += span.bytes;
    change[static_cast<size_t>(span.end)] -= span.bytes;
  }
  int64_t most = 0, now = 0;
  for (const int64_t bytes : change) most = std::max(most, now += bytes);
  return most;
}

}  // namespace

StreamedWeights streamed_weights(const Plan& plan) {
  StreamedWeights out;
  for (const PersistentTensor& tensor : plan.tensors)
    if (tensor.role == Role::parameter && tensor.place.tier != Tier::device)
      out.below_bytes += storage_bytes(tensor.place.type);
  if (out.below_bytes == 0) return out;
  for (const PlanProgram& program : plan.programs) {
    out.step_bytes = std::max(out.step_bytes, copied_bytes(program));
    out.window_bytes = std::max(out.window_bytes, most_windows(plan, program));
  }
  return out;
}

}  // namespace headroom
