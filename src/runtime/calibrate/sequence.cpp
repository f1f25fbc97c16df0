// The time of a sequence of calls, as in a step.
#include <algorithm>
#include <span>
#include <utility>

#include "ops/registry.h"
#include "runtime/calibrate/timed_call.h"

namespace headroom {
namespace {

constexpr int kPasses = 3;

}  // namespace

std::vector<TimedCalls::Prepared> TimedCalls::prepare(const Sequence& sequence) {
  std::vector<ConcreteType> types = sequence.tensors;
  std::vector<Prepared> calls;
  for (const std::vector<Member>* members : {&sequence.forward, &sequence.backward})
    for (const Member& member : *members) {
      std::vector<ConcreteType> inputs;
      for (size_t tensor : member.inputs) inputs.push_back(types.at(tensor));
      KernelSpec spec = spec_of(find_op(member.op), member.attrs, std::move(inputs));
      types.insert(types.end(), spec.outputs.begin(), spec.outputs.end());
      std::unique_ptr<DeviceKernel> kernel = device_.prepare(spec);
      calls.push_back({std::move(spec), std::move(kernel), member.inputs});
    }
  return calls;
}

// One set of tensors, after the memory in use.
std::vector<TimedCalls::Placed> TimedCalls::place(const Sequence& sequence, const std::vector<Prepared>& calls) {
  std::vector<TensorView> tensors;
  for (const ConcreteType& type : sequence.tensors)
    tensors.push_back({take(storage_bytes(type)), type.dtype, type.dims});
  std::vector<Placed> placed;
  for (const Prepared& call : calls) {
    CallTensors operands;
    for (size_t tensor : call.inputs) operands.inputs.push_back(tensors.at(tensor));
    place_outputs(call.spec, operands);
    tensors.insert(tensors.end(), operands.outputs.begin(), operands.outputs.end());
    placed.push_back({call.kernel.get(), std::move(operands)});
  }
  return placed;
}

double TimedCalls::sequence_seconds(const Sequence& sequence, int sets,
                                    const std::function<void(const Op&, const OpCall&)>& each) {
  const std::vector<Prepared> calls = prepare(sequence);
  for (const Prepared& call : calls) each(find_op(call.spec.op), call.spec.call());
  const size_t first = next_points(calls.size());
  const auto points = std::span(points_).subspan(first, calls.size());
  if (std::any_of(points.begin(), points.end(), [&](const Samples& point) { return wanted(point); }))
    run_sequence(sequence, sets, calls, first);
  double seconds = 0;
  for (const Samples& point : points) seconds += conclude(point);
  return seconds * sets;
}

void TimedCalls::run_sequence(const Sequence& sequence, int sets, const std::vector<Prepared>& calls,
                              size_t first_point) {
  used_ = first_;
  int64_t scratch_bytes = 0;
  for (const Prepared& call : calls) scratch_bytes = std::max(scratch_bytes, call.spec.scratch_bytes);
  const std::span<std::byte> scratch(take(scratch_bytes), static_cast<size_t>(scratch_bytes));
  std::vector<std::vector<Placed>> placed;
  for (int set = 0; set < sets; ++set) placed.push_back(place(sequence, calls));
  fill();
  const size_t turn = sequence.forward.size();
  bool warm = over();
  const auto run = [&](const std::vector<Placed>& set, size_t begin, size_t end) {
    if (device_.host_visible())
      for (const Placed& call : set) call.tensors.evict();
    device_.synchronize(0);
    Reading before = stopwatch_();
    for (size_t i = begin; i < end; ++i) {
      launch(*set[i].kernel, set[i].tensors, scratch);
      device_.synchronize(0);
      const Reading after = stopwatch_();
      if (warm) points_[first_point + i].add(between(before, after));
      before = after;
    }
  };
  const auto pass = [&] {
    for (const std::vector<Placed>& set : placed) run(set, 0, turn);
    for (auto set = placed.rbegin(); set != placed.rend(); ++set) run(*set, turn, calls.size());
  };
  pass();
  if (std::exchange(warm, true)) return;
  for (int i = 0; i < kPasses; ++i) pass();
}

}  // namespace headroom
