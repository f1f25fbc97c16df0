#include <fmt/format.h>

#include <iterator>

#include "plan/plan.h"

namespace headroom {
namespace {

using Out = std::back_insert_iterator<std::string>;

void write_operands(Out out, const std::vector<Operand>& operands) {
  const char* separator = "";
  for (const Operand& operand : operands) {
    fmt::format_to(out, "{}{}[{}]@{}{}", separator, dtype_name(operand.type.dtype), fmt::join(operand.type.dims, ","),
                   operand.tier == Tier::device ? "" : fmt::format("{}:", tier_name(operand.tier)), operand.offset);
    separator = ", ";
  }
}

// " host 896 disk 4096": for the tiers that the plan uses.
void write_lower_tiers(Out out, const Plan& plan, const TierBytes& bytes) {
  for (const Tier tier : kLowerTiers)
    if (plan.below(tier).arena_bytes > 0) fmt::format_to(out, " {} {}", tier_name(tier), bytes.of(tier));
}

void write_attrs(Out out, const Attrs& attrs) {
  const char* separator = " {";
  for (const auto& [name, value] : attrs.items()) {
    fmt::format_to(out, "{}{}=", separator, name);
    std::visit([&](const auto& v) { fmt::format_to(out, "{}", v); }, value);
    separator = ", ";
  }
  if (!attrs.items().empty()) fmt::format_to(out, "}}");
}

void write_instruction(Out out, const Instruction& instruction) {
  if (instruction.kind != InstructionKind::call) {
    fmt::format_to(out, "  {}", instruction.kind == InstructionKind::loop_begin ? "loop" : "end");
    if (instruction.kind == InstructionKind::loop_begin) fmt::format_to(out, " {}", instruction.attrs.text("trips"));
    fmt::format_to(out, "\n");
    return;
  }
  fmt::format_to(out, "  ");
  write_operands(out, instruction.outputs);
  fmt::format_to(out, " = {}(", op_name(*instruction.op));
  write_operands(out, instruction.inputs);
  fmt::format_to(out, ")");
  write_attrs(out, instruction.attrs);
  if (instruction.scratch_bytes > 0)
    fmt::format_to(out, " scratch {}@{}", instruction.scratch_bytes, instruction.scratch_offset);
  if (instruction.block != kNone) fmt::format_to(out, " block {}", instruction.block);
  fmt::format_to(out, " {}\n", stage_name(instruction.stage));
}

}  // namespace

std::string plan_text(const Plan& plan) {
  std::string text;
  Out out(text);
  fmt::format_to(out, "plan {} arena {} process {}", plan.model, plan.arena_bytes, plan.process.total());
  write_lower_tiers(out, plan, plan.arenas());
  fmt::format_to(out, "\n");
  for (const PersistentTensor& tensor : plan.tensors) {
    fmt::format_to(out, "tensor \"{}\" {} ", tensor.name, role_name(tensor.role));
    write_operands(out, {tensor.place});
    fmt::format_to(out, "\n");
  }
  for (const PlanProgram& program : plan.programs) {
    fmt::format_to(out, "program {} peak {}", program.name, program.peaks.device);
    write_lower_tiers(out, plan, program.peaks);
    fmt::format_to(out, "\n");
    for (const Instruction& instruction : program.instructions) write_instruction(out, instruction);
    fmt::format_to(out, "  results ");
    write_operands(out, program.results);
    fmt::format_to(out, "\n");
  }
  return text;
}

}  // namespace headroom
