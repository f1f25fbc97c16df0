#include "planner/explain_automatic.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"

namespace headroom {
namespace {

// Calls visit(instruction) for the calls of a program whose op is `wanted`.
template <typename Wanted, typename Visit>
void for_each_call(const PlanProgram* program, Wanted wanted, Visit visit) {
  if (!program) return;
  for (const Instruction& instruction : program->instructions)
    if (instruction.kind == InstructionKind::call && wanted(*instruction.op)) visit(instruction);
}

auto of_kind(OpKind kind) {
  return [kind](const Op& op) { return op.kind() == kind; };
}

int64_t batch_bytes(const PlanProgram* program) {
  int64_t bytes = 0;
  for_each_call(program, of_kind(OpKind::next_batch), [&](const Instruction& call) {
    for (const Operand& output : call.outputs) bytes += storage_bytes(output.type);
  });
  return bytes;
}

// The sums of the gradients of all micro-batches. What the backward pass allocates are windows or copies of these;
// where nothing is carried through it, the gradients themselves.
int64_t accumulator_bytes(const PlanProgram* program) {
  int64_t carried = 0, inside = 0;
  for_each_call(program, of_kind(OpKind::allocate), [&](const Instruction& call) {
    const Operand& made = result_of(call);
    if (made.type.dtype == DType::f64) return;  // sums of losses and of squares
    (call.stage == Stage::backward ? inside : carried) += storage_bytes(made.type);
  });
  return carried > 0 ? carried : inside;
}

// The scores of one attention call as a matrix of fp32.
int64_t score_bytes(const PlanProgram* program) {
  int64_t most = 0;
  const auto attends = [](const Op& op) { return op.cost_class() == CostClass::attention; };
  for_each_call(program, attends, [&](const Instruction& call) {
    const std::vector<int64_t>&q = operand(call, "q").type.dims, &k = operand(call, "k").type.dims;
    most = std::max(most, q.at(0) * call.attrs.integer("heads") * q.at(1) * k.at(1) * 4);
  });
  return most;
}

// Single-pass kernels for what frameworks run as several pointwise ops: how many, and the largest tensor of one.
struct Fused {
  int64_t calls = 0;
  int64_t largest = 0;
};
Fused fused_calls(const PlanProgram* program) {
  Fused found;
  const auto pointwise = [](const Op& op) {
    return op.kind() == OpKind::norm || op.kind() == OpKind::activation || op.kind() == OpKind::rotation;
  };
  for_each_call(program, pointwise, [&](const Instruction& call) {
    ++found.calls;
    found.largest = std::max(found.largest, storage_bytes(call.inputs.front().type));
  });
  return found;
}

int64_t count_updates(const PlanProgram* program) {
  int64_t calls = 0;
  for_each_call(program, of_kind(OpKind::update), [&](const Instruction&) { ++calls; });
  return calls;
}

}  // namespace

std::vector<AutomaticItem> automatic_items(const Plan& plan) {
  const PlanProgram* const step = plan.program("train_step");
  const PlanProgram* const evaluate = plan.program("evaluate");
  std::vector<AutomaticItem> items;
  const int64_t gradients = accumulator_bytes(step);
  items.push_back({"no zeroing of gradients", gradients,
                   "the first micro-batch overwrites them; `zero_grad` has nothing to write or to read back"});
  items.push_back({"gradients set to none", gradients,
                   "outside the training step their bytes belong to evaluation and saving (`set_to_none=True`)"});
  if (step && evaluate)
    items.push_back(
        {"no-grad evaluation", step->peaks.device - evaluate->peaks.device,
         fmt::format("evaluation keeps nothing for a backward pass and peaks at {} of the arena (`no_grad`)",
                     format_bytes(evaluate->peaks.device))});
  const Fused fused = fused_calls(step);
  items.push_back({"fused pointwise ops", fused.largest,
                   fmt::format("{} norms, activations and rotations of the step run in one pass each, without the "
                               "intermediate tensors, the largest of this size",
                               fused.calls)});
  items.push_back({"attention scores not stored", score_bytes(step),
                   "tiles of them live in scratch; a whole matrix of one layer would take this"});
  items.push_back({"fused optimizer", -1,
                   fmt::format("{} updates, each one pass over weight, gradient and states without temporaries",
                               count_updates(step))});
  items.push_back(
      {"asynchronous loading", batch_bytes(step),
       "tokens are ready before step 0; a micro-batch is read directly into the arena, without workers, pinned copies "
       "or a prefetch queue"});
  items.push_back({"memory for the longest sequence", plan.arena_bytes,
                   "the arena is laid out for --max-seq-length before step 0: no later batch needs more"});
  items.push_back({"no fragmentation", plan.breakdown.alignment,
                   "every tensor has a fixed offset; alignment and gaps take this much"});
  items.push_back({"threads", -1, fmt::format("one team of {} for kernels and libraries", plan.facts.threads)});
  return items;
}

std::string explain_automatic(const Plan& plan) {
  std::string text = "automatic: what tuning guides ask for by hand\n";
  for (const AutomaticItem& item : automatic_items(plan))
    text += fmt::format("  {:<32}{:>12}  {}\n", item.name, item.bytes < 0 ? "" : format_bytes(item.bytes), item.why);
  return text;
}

}  // namespace headroom
