#include "planner/emit.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "cost/predict.h"
#include "ir/row_slice.h"
#include "memory/lower_bound.h"
#include "ops/backend.h"
#include "planner/techniques/length_buckets.h"

namespace headroom {
namespace {

class Emitter {
 public:
  Emitter(const Graph& graph, const Bindings& bindings, const Liveness& liveness, const Arenas& arenas,
          const Profile& profile)
      : graph_(graph), bindings_(bindings), liveness_(liveness), arenas_(arenas), profile_(profile) {}

  // The operand of a value, or only of those rows of it.
  Operand operand(ValueId id, const std::optional<RowSlice>& slice = {}) const {
    const int32_t storage = liveness_.storage_of_value[static_cast<size_t>(id)];
    HR_CHECK(storage != kNone, "%{} has no storage", id);
    const Type& type = graph_.value(id).type;
    Operand out{arenas_.offsets[static_cast<size_t>(storage)], concrete(type, bindings_), type.tier};
    if (slice) out.offset += select_rows(type, out.type, *slice);
    return out;
  }

  Instruction instruction(int64_t slot) const {
    const Slot& at = liveness_.slots[static_cast<size_t>(slot)];
    const Node& node = graph_.node(at.node);
    Instruction out;
    constexpr InstructionKind kinds[] = {InstructionKind::call, InstructionKind::loop_begin, InstructionKind::loop_end};
    out.kind = kinds[static_cast<size_t>(at.kind)];
    out.op = node.op;
    out.attrs = node.attrs;
    out.block = node.block;
    out.stage = node.stage;
    if (at.kind != SlotKind::call) return out;
    const std::optional<RowSlice> slice = row_slice(node.attrs);
    for (ValueId id : node.inputs) out.inputs.push_back(operand(id, slice));
    for (ValueId id : node.outputs) out.outputs.push_back(operand(id, slice));
    const std::vector<ConcreteType> inputs = types_of(out.inputs), outputs = types_of(out.outputs);
    out.predicted_seconds = predict_call(*node.op, {inputs, outputs, node.attrs}, profile_);
    if (const int32_t scratch = liveness_.scratch_of_slot[static_cast<size_t>(slot)]; scratch != kNone) {
      out.scratch_offset = arenas_.offsets[static_cast<size_t>(scratch)];
      out.scratch_bytes = liveness_.storages[static_cast<size_t>(scratch)].bytes;
    }
    return out;
  }

  PlanProgram program(size_t index) const {
    PlanProgram out;
    out.name = graph_.programs[index].name;
    const auto [begin, end] = liveness_.program_slots[index];
    out.instructions.reserve(static_cast<size_t>(end - begin));
    for (int64_t slot = begin; slot < end; ++slot) out.instructions.push_back(instruction(slot));
    for (ValueId id : graph_.region(graph_.programs[index].region).results) out.results.push_back(operand(id));
    for (size_t i = 0; i < liveness_.storages.size(); ++i) {
      const StorageLife& life = liveness_.storages[i];
      if (life.lower >= std::max(end, begin + 1) || begin >= life.upper) continue;
      int64_t& peak = out.peaks.of(life.tier);
      peak = std::max(peak, arenas_.offsets[i] + life.bytes);
    }
    return out;
  }

  std::vector<PersistentTensor> tensors() const {
    std::vector<PersistentTensor> out;
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id)
      if (const Value& value = graph_.value(id); value.persistent) out.push_back({value.name, value.role, operand(id)});
    return out;
  }

 private:
  const Graph& graph_;
  const Bindings& bindings_;
  const Liveness& liveness_;
  const Arenas& arenas_;
  const Profile& profile_;
};

Breakdown breakdown_at(const Liveness& liveness, Tier tier, int64_t slot, int64_t arena) {
  Breakdown b;
  for (const StorageLife& life : liveness.storages) {
    if (life.tier != tier || slot < life.lower || slot >= life.upper) continue;
    switch (life.role) {
      case Role::parameter:
        b.weights += life.bytes;
        break;
      case Role::gradient:
        b.gradients += life.bytes;
        break;
      case Role::optimizer:
        b.optimizer += life.bytes;
        break;
      case Role::activation:
      case Role::kv_cache:
        b.activations += life.bytes;
        break;
      case Role::workspace:
        b.workspace += life.bytes;
        break;
      case Role::constant:
      case Role::data:
        b.data += life.bytes;
        break;
    }
  }
  b.alignment = arena - (b.weights + b.gradients + b.optimizer + b.activations + b.workspace + b.data);
  return b;
}

void check_scratch(const Instruction& instruction, const DeviceFacts& facts) {
  if (instruction.kind != InstructionKind::call) return;
  std::vector<ConcreteType> inputs, outputs;
  for (const Operand& operand : instruction.inputs) inputs.push_back(operand.type);
  for (const Operand& operand : instruction.outputs) outputs.push_back(operand.type);
  const int64_t needed = scratch_bytes(*instruction.op, {inputs, outputs, instruction.attrs}, facts);
  HR_CHECK(needed <= instruction.scratch_bytes, "a shorter {} needs {} bytes of scratch, not {}",
           op_name(*instruction.op), needed, instruction.scratch_bytes);
}

}  // namespace

void emit_programs(const Graph& graph, const Bindings& bindings, const Liveness& liveness, const Arenas& arenas,
                   const PlanRequest& request, Plan& plan) {
  const std::optional<std::string> violation = find_violation(liveness, arenas, request.facts.alignment);
  HR_CHECK(!violation, "the offset assignment is unsound: {}", *violation);
  plan.arena_bytes = arenas.peaks.device;
  int64_t slot = 0;
  plan.lower_bound_bytes = lower_bound(liveness.buffers(Tier::device), request.facts.alignment, &slot);
  plan.breakdown = breakdown_at(liveness, Tier::device, slot, plan.arena_bytes);
  for (const Tier tier : kLowerTiers) {
    TierPlan& below = plan.below(tier);
    below.arena_bytes = arenas.peaks.of(tier);
    below.lower_bound_bytes = lower_bound(liveness.buffers(tier), tier_alignment(tier, request.facts.alignment), &slot);
    below.breakdown = breakdown_at(liveness, tier, slot, below.arena_bytes);
  }
  const Emitter emitter(graph, bindings, liveness, arenas, request.profile);
  plan.tensors = emitter.tensors();
  plan.programs.clear();
  for (size_t i = 0; i < graph.programs.size(); ++i) plan.programs.push_back(emitter.program(i));
}

void emit_buckets(const Graph& graph, const Liveness& liveness, const Arenas& arenas, const PlanRequest& request,
                  std::span<const int64_t> lengths, Plan& plan) {
  for (const int64_t length : lengths) {
    const Bindings bindings = bucket_bindings(graph, length);
    const Emitter emitter(graph, bindings, liveness, arenas, request.profile);
    for (size_t i = 0; i < graph.programs.size(); ++i) {
      if (graph.programs[i].name != "train_step" && graph.programs[i].name != "evaluate") continue;
      PlanProgram program = emitter.program(i);
      program.name = bucket_program(program.name, length);
      for (const Instruction& instruction : program.instructions) check_scratch(instruction, request.facts);
      plan.programs.push_back(std::move(program));
    }
  }
}

}  // namespace headroom
