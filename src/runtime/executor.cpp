#include "runtime/executor.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/bytes.h"
#include "base/error.h"
#include "base/process_memory.h"
#include "ir/row_slice.h"

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
    for (const ConcreteType& type : *types) {
      fmt::format_to(out, "{}{} ", dtype_name(type.dtype), fmt::join(type.dims, "x"));
      if (const Storage& in = type.storage; !in.dense())
        fmt::format_to(out, "{}-{}-{}-{}-{} ", in.block, in.payload_bits, dtype_name(in.scale),
                       code_table_name(in.codes), in.scale_block);
    }
  }
  fmt::format_to(out, "|{}", spec.scratch_bytes);
  return text;
}

KernelSpec spec_of(const Instruction& instruction) {
  KernelSpec spec;
  spec.op = kernel_key(*instruction.op);
  spec.attrs = instruction.attrs;
  if (const std::optional<RowSlice> slice = row_slice(instruction.attrs)) set_row_slice(spec.attrs, {0, slice->rows});
  spec.inputs = types_of(instruction.inputs);
  spec.outputs = types_of(instruction.outputs);
  spec.scratch_bytes = instruction.scratch_bytes;
  return spec;
}

}  // namespace

Executor::Executor(const Plan& plan, Device& device, HostPort* host, Reservation arenas)
    : plan_(plan), device_(device), host_(host), copies_(device), outside_(device) {
  require_room();
  outside_.took("the context and the libraries' handles");
  prepare_kernels();
  outside_.took("kernels and the libraries' plans");
  prepare_copies();
  outside_.took("streams and events of copies");
  outside_.require(plan_.process.total() - plan_.process.graphs);
  require_room();
  if (arenas == Reservation::now) reserve_arenas();
}

void Executor::require_room() {
  for (const Tier tier : kArenaTiers)
    if (const int64_t bytes = plan_.arenas().of(tier); bytes > 0) device_.require_room(tier, bytes);
}

void Executor::reserve_arenas() {
  release_what_is_behind();
  for (auto tier = kArenaTiers.rbegin(); tier != kArenaTiers.rend(); ++tier)
    if (const int64_t bytes = plan_.arenas().of(*tier); bytes > 0 || *tier == Tier::device)
      bases_[static_cast<size_t>(*tier)] = device_.reserve_arena(*tier, bytes);
  for (Prepared& program : programs_) bind(program);
  outside_.took("the tables of what is page-locked, and the rest of the arena's last piece");
  for (Prepared& program : programs_) capture(program);
  outside_.took("CUDA graphs");
  outside_.require(plan_.process.total());
}

const DeviceKernel* Executor::kernel_for(const Instruction& instruction) {
  const KernelSpec spec = spec_of(instruction);
  std::unique_ptr<DeviceKernel>& kernel = kernels_[signature(spec)];
  if (!kernel) kernel = device_.prepare(spec);
  return kernel.get();
}

void Executor::prepare_kernels() {
  for (const PlanProgram& source : plan_.programs) {
    Prepared& program = programs_.emplace_back();
    program.source = &source;
    std::set<int64_t> copying;  // offsets of the tokens of copies that nothing has waited for yet
    for (const Instruction& instruction : source.instructions) {
      Step& step = program.steps.emplace_back();
      step.kind = instruction.kind;
      step.trips = instruction.attrs.text("trips");
      if (instruction.kind != InstructionKind::call || is_bookkeeping(instruction)) continue;
      if (instruction.op->kind() == OpKind::copy_start) {
        step.action = Action::copy;
        copying.insert(token_of(instruction).offset);
      } else if (instruction.op->kind() == OpKind::wait && copying.erase(operand(instruction, "token").offset) > 0) {
        step.action = Action::wait;
      } else {
        step.action = Action::kernel;
        step.kernel = kernel_for(instruction);
        if (const std::optional<RowSlice> slice = row_slice(instruction.attrs)) step.first_row = slice->first;
      }
    }
  }
}

void Executor::prepare_copies() {
  for (Prepared& program : programs_)
    for (size_t i = 0; i < program.steps.size(); ++i) {
      const Instruction& instruction = program.source->instructions[i];
      Step& step = program.steps[i];
      if (step.action == Action::copy) {
        const Operand& to = result_of(instruction);
        step.copied = copies_.event_of(token_of(instruction).offset);
        step.stream = &copies_.stream_of(operand(instruction, "x").tier, to.tier);
        step.bytes = storage_bytes(to.type);
      } else if (step.action == Action::wait) {
        step.copied = copies_.event_of(operand(instruction, "token").offset);
      }
    }
}

// An arena grants whole multiples of its alignment.
int64_t Executor::granted(Tier tier, int64_t bytes) const {
  return align_up(bytes, tier_alignment(tier, plan_.facts.alignment));
}

TensorView Executor::view(const Operand& operand) const {
  return {base(operand.tier) + operand.offset, operand.type.dtype, operand.type.dims};
}

void Executor::bind_operands(const std::vector<Operand>& operands, Prepared& program, Step& step) {
  for (const Operand& operand : operands) {
    program.views.push_back(view(operand));
    int64_t& end = step.end_offset.of(operand.tier);
    end = std::max(end, operand.offset + granted(operand.tier, storage_bytes(operand.type)));
  }
}

void Executor::bind(Prepared& program) {
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Instruction& instruction = program.source->instructions[i];
    Step& step = program.steps[i];
    step.first_input = program.views.size(), step.input_count = instruction.inputs.size();
    bind_operands(instruction.inputs, program, step);
    step.first_output = program.views.size(), step.output_count = instruction.outputs.size();
    bind_operands(instruction.outputs, program, step);
    if (instruction.scratch_bytes > 0) {
      step.scratch = {base(Tier::device) + instruction.scratch_offset, static_cast<size_t>(instruction.scratch_bytes)};
      step.end_offset.device = std::max(step.end_offset.device,
                                        instruction.scratch_offset + granted(Tier::device, instruction.scratch_bytes));
    }
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
  if (stopped_) copies_.synchronize();  // all copies of a whole program were waited for
  return !stopped_;
}

void Executor::run_steps(const Prepared& program, size_t begin, size_t end, int64_t trip,
                         std::span<const Trips> trips) {
  for (size_t at = begin; at < end && !stopped_; ++at) {
    const Step& step = program.steps[at];
    for (const Tier tier : kArenaTiers) high_water_.of(tier) = std::max(high_water_.of(tier), step.end_offset.of(tier));
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
    if (step.action == Action::none) continue;
    if (!should_stop_ && replay(step, trip)) {
      at = step.span_end - 1;
      continue;
    }
    run_call(program, step, trip);
    if (should_stop_ && should_stop_()) stopped_ = true;
  }
}

void Executor::run_call(const Prepared& program, const Step& step, int64_t trip) {
  const TensorView* const inputs = program.views.data() + step.first_input;
  const TensorView* const outputs = program.views.data() + step.first_output;
  if (step.action == Action::copy)
    return copies_.start(outputs->as<std::byte>(), inputs->as<std::byte>(), step.bytes, *step.stream, step.copied);
  if (step.action == Action::wait) return copies_.wait(step.copied);
  KernelCall call;
  call.inputs = {inputs, step.input_count};
  call.outputs = {outputs, step.output_count};
  call.scratch = step.scratch;
  call.trip = trip;
  call.first_row = step.first_row;
  call.host = host_;
  device_.launch(*step.kernel, call, 0);
}

std::span<std::byte> Executor::arena(Tier tier) { return {base(tier), static_cast<size_t>(plan_.arenas().of(tier))}; }

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
    if (program.source->instructions[i].op->kind() == OpKind::host_stage) {
      high_water_.device = std::max(high_water_.device, program.steps[i].end_offset.device);
      return program.steps[i].scratch;
    }
  HR_CHECK(false, "program '{}' has no host_stage", name);
  return {};
}

}  // namespace headroom
