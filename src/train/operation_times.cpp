#include "train/operation_times.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

namespace headroom {
namespace {

struct OperationTime {
  int64_t calls = 0;
  double flops = 0, bytes = 0, seconds = 0, predicted = 0;
};

// The key of a group: the properties by which the kernel is chosen, as far as a reader needs them.
std::string group_of(const Instruction& instruction) {
  std::string operands;
  auto out = std::back_inserter(operands);
  for (const Operand& operand : instruction.inputs)
    fmt::format_to(out, "{}{}[{}]", operands.empty() ? "" : " ", dtype_name(operand.type.dtype),
                   fmt::join(operand.type.dims, ","));
  if (const std::string_view multiply = instruction.attrs.text("multiply"); !multiply.empty())
    fmt::format_to(out, " as {}", multiply);
  return fmt::format(R"("op": "{}", "stage": "{}", "operands": "{}")", op_name(*instruction.op),
                     stage_name(instruction.stage), operands);
}

}  // namespace

std::string operations_json(const PlanProgram& program, std::span<const double> seconds,
                            std::span<const int64_t> calls) {
  std::map<std::string, OperationTime> groups;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (calls[i] == 0) continue;
    const std::vector<ConcreteType> inputs = types_of(instruction.inputs), outputs = types_of(instruction.outputs);
    const Work work = instruction.op->work({inputs, outputs, instruction.attrs});
    const double count = static_cast<double>(calls[i]);
    OperationTime& group = groups[group_of(instruction)];
    group.calls += calls[i];
    group.flops += work.flops * count, group.bytes += work.bytes * count;
    group.seconds += seconds[i], group.predicted += instruction.predicted_seconds * count;
  }
  std::vector<std::pair<std::string, OperationTime>> rows(groups.begin(), groups.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  std::string text = "{\"operations\": [";
  for (const auto& [name, row] : rows)
    fmt::format_to(std::back_inserter(text),
                   "{}\n  {{{}, \"calls\": {}, \"flops\": {:.0f}, \"bytes\": {:.0f}, \"seconds\": {:.6f}, "
                   "\"predicted_seconds\": {:.6f}}}",
                   &name == &rows.front().first ? "" : ",", name, row.calls, row.flops, row.bytes, row.seconds,
                   row.predicted);
  return text + "]}\n";
}

}  // namespace headroom
