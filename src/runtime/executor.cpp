#include "runtime/executor.h"

#include <algorithm>
#include <iterator>

#include "base/bytes.h"
#include "base/error.h"

namespace headroom {
namespace {

// Ops that only book scratch: nothing to launch.
bool is_bookkeeping(const Instruction& instruction) {
  return instruction.op->cost_class() == CostClass::none && instruction.outputs.empty();
}

std::string signature(const KernelSpec& spec) {
  std::string text(spec.op);
  auto out = std::back_inserter(text);
  for (const auto& [name, value] : spec.attrs.items()) {
    fmt::format_to(out, ";{}=", name);
    std::visit([&](const auto& v) { fmt::format_to(out, "{}", v); }, value);
  }
  for (const auto* types : {&spec.inputs, &spec.outputs}) {
    text += '|';
    for (const ConcreteType& type : *types)
      fmt::format_to(out, "{}{} ", dtype_name(type.dtype), fmt::join(type.dims, "x"));
  }
  fmt::format_to(out, "|{}", spec.scratch_bytes);
  return text;
}

KernelSpec spec_of(const Instruction& instruction) {
  KernelSpec spec;
  spec.op = instruction.op->name();
  spec.attrs = instruction.attrs;
  spec.inputs = types_of(instruction.inputs);
  spec.outputs = types_of(instruction.outputs);
  spec.scratch_bytes = instruction.scratch_bytes;
  return spec;
}

}  // namespace

Executor::Executor(const Plan& plan, Device& device, HostPort* host) : plan_(plan), device_(device), host_(host) {
  prepare_kernels();
  base_ = device_.reserve_arena(plan_.arena_bytes);
  for (Prepared& program : programs_) bind(program);
}

void Executor::prepare_kernels() {
  for (const PlanProgram& source : plan_.programs) {
    programs_.push_back({&source, {}, {}});
    std::vector<const DeviceKernel*> kernels;
    for (const Instruction& instruction : source.instructions) {
      if (instruction.kind != InstructionKind::call || is_bookkeeping(instruction)) {
        kernels.push_back(nullptr);
        continue;
      }
      const KernelSpec spec = spec_of(instruction);
      std::unique_ptr<DeviceKernel>& kernel = kernels_[signature(spec)];
      if (!kernel) kernel = device_.prepare(spec);
      kernels.push_back(kernel.get());
    }
    kernel_of_.push_back(std::move(kernels));
  }
}

// The arena grants whole multiples of the alignment.
int64_t Executor::granted(int64_t bytes) const { return align_up(bytes, plan_.facts.alignment); }

TensorView Executor::view(const Operand& operand) const {
  return {base_ + operand.offset, operand.type.dtype, operand.type.dims};
}

void Executor::bind(Prepared& program) {
  const size_t index = static_cast<size_t>(&program - programs_.data());
  for (size_t i = 0; i < program.source->instructions.size(); ++i) {
    const Instruction& instruction = program.source->instructions[i];
    Step step;
    step.kind = instruction.kind;
    step.kernel = kernel_of_[index][i];
    step.trips = instruction.attrs.text("trips");
    step.first_input = program.views.size(), step.input_count = instruction.inputs.size();
    for (const Operand& operand : instruction.inputs) {
      program.views.push_back(view(operand));
      step.end_offset = std::max(step.end_offset, operand.offset + granted(storage_bytes(operand.type)));
    }
    step.first_output = program.views.size(), step.output_count = instruction.outputs.size();
    for (const Operand& operand : instruction.outputs) {
      program.views.push_back(view(operand));
      step.end_offset = std::max(step.end_offset, operand.offset + granted(storage_bytes(operand.type)));
    }
    if (instruction.scratch_bytes > 0) {
      step.scratch = {base_ + instruction.scratch_offset, static_cast<size_t>(instruction.scratch_bytes)};
      step.end_offset = std::max(step.end_offset, instruction.scratch_offset + granted(instruction.scratch_bytes));
    }
    program.steps.push_back(step);
  }
}

const Executor::Prepared& Executor::find(std::string_view program) const {
  for (const Prepared& candidate : programs_)
    if (candidate.source->name == program) return candidate;
  HR_CHECK(false, "the plan has no program '{}'", program);
  return programs_.front();
}

bool Executor::run(std::string_view name, std::span<const Trips> trips) {
  const Prepared& program = find(name);
  stopped_ = false;
  run_steps(program, 0, program.steps.size(), 0, trips);
  device_.synchronize(0);
  return !stopped_;
}

void Executor::run_steps(const Prepared& program, size_t begin, size_t end, int64_t trip,
                         std::span<const Trips> trips) {
  for (size_t at = begin; at < end && !stopped_; ++at) {
    const Step& step = program.steps[at];
    high_water_ = std::max(high_water_, step.end_offset);
    if (step.kind == InstructionKind::loop_begin) {
      size_t close = at + 1;
      for (int depth = 1; depth > 0; ++close) {
        if (program.steps[close].kind == InstructionKind::loop_begin) ++depth;
        if (program.steps[close].kind == InstructionKind::loop_end) --depth;
      }
      const auto count = std::find_if(trips.begin(), trips.end(), [&](const Trips& t) { return t.name == step.trips; });
      HR_CHECK(count != trips.end(), "no trip count '{}' is given", step.trips);
      for (int64_t i = 0; i < count->count && !stopped_; ++i) run_steps(program, at + 1, close - 1, i, trips);
      at = close - 1;
      continue;
    }
    if (!step.kernel) continue;
    KernelCall call;
    call.inputs = {program.views.data() + step.first_input, step.input_count};
    call.outputs = {program.views.data() + step.first_output, step.output_count};
    call.scratch = step.scratch;
    call.trip = trip;
    call.host = host_;
    device_.launch(*step.kernel, call, 0);
    if (should_stop_ && should_stop_()) stopped_ = true;
  }
}

TensorView Executor::tensor(std::string_view name) const {
  const PersistentTensor* tensor = plan_.tensor(name);
  HR_CHECK(tensor, "the plan has no tensor '{}'", name);
  return view(tensor->place);
}

TensorView Executor::result(std::string_view program, size_t index) const {
  return view(find(program).source->results.at(index));
}

std::span<std::byte> Executor::staging(std::string_view name) {
  if (!device_.host_visible()) return window_half(1);
  const Prepared& program = find(name);
  for (size_t i = 0; i < program.steps.size(); ++i)
    if (program.source->instructions[i].op->name() == "host_stage") {
      high_water_ = std::max(high_water_, program.steps[i].end_offset);
      return program.steps[i].scratch;
    }
  HR_CHECK(false, "program '{}' has no host_stage", name);
  return {};
}

}  // namespace headroom
