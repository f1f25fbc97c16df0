// Rules about definitions and types.
#include <algorithm>
#include <new>

#include "ir/print.h"
#include "ir/row_slice.h"
#include "ir/verify_rules.h"

namespace headroom {

void check_single_definition(const CheckedGraph& checked, Findings& findings) {
  for (ValueId id : checked.index.redefined())
    findings.add(checked.index.definition(id).node, "value %{} is defined twice", id);
}

void check_persistent_has_no_producer(const CheckedGraph& checked, Findings& findings) {
  for (size_t i = 0; i < checked.graph.values.size(); ++i) {
    const Definition& definition = checked.index.definition(static_cast<ValueId>(i));
    if (checked.graph.values[i].persistent && definition.region != kNone)
      findings.add(definition.node, "persistent value %{} is defined in a program", i);
  }
}

namespace {

void check_visible(const CheckedGraph& checked, ValueId id, NodeId reader, RegionId region, int32_t time,
                   Findings& findings) {
  if (checked.graph.value(id).persistent) return;
  const Definition& definition = checked.index.definition(id);
  if (definition.region == kNone) {
    findings.add(reader, "value %{} is read and nothing defines it", id);
    return;
  }
  // A definition is visible to later nodes of its region and of the loops nested there.
  if (definition.time >= time)
    findings.add(reader, "value %{} is read before it is defined", id);
  else if (!checked.index.encloses(definition.region, region))
    findings.add(reader, "value %{} is read outside the region that defines it", id);
}

}  // namespace

void check_defined_before_use(const CheckedGraph& checked, Findings& findings) {
  for (NodeId id : checked.index.order()) {
    const NodePlace& place = checked.index.node(id);
    for (ValueId input : checked.graph.node(id).inputs)
      check_visible(checked, input, id, place.region, place.time, findings);
  }
  for (size_t i = 0; i < checked.graph.regions.size(); ++i) {
    const auto region = static_cast<RegionId>(i);
    const RegionPlace& place = checked.index.region(region);
    if (!place.reachable()) continue;
    for (ValueId result : checked.graph.regions[i].results)
      check_visible(checked, result, place.owner, region, place.end, findings);
  }
}

namespace {

void check_same_type(const CheckedGraph& checked, NodeId node, ValueId value, const char* what, ValueId expected,
                     const char* expected_what, Findings& findings) {
  const Type& a = checked.graph.value(value).type;
  const Type& b = checked.graph.value(expected).type;
  if (a == b) return;
  findings.add(node, "{} %{} is {}, {} %{} is {}", what, value, print_type(checked.graph, a), expected_what, expected,
               print_type(checked.graph, b));
}

}  // namespace

void check_region_params(const CheckedGraph& checked, Findings& findings) {
  for (const Program& program : checked.graph.programs)
    if (const size_t params = checked.graph.region(program.region).params.size(); params > 0)
      findings.add(kNone, "program {} has {} params", program.name, params);
  for (NodeId id : checked.index.order()) {
    const Node& node = checked.graph.node(id);
    if (!is_loop(node)) continue;
    const Region& body = checked.graph.region(node.body);
    for (size_t i = 0; i < node.inputs.size(); ++i)
      check_same_type(checked, id, body.params[i], "param", node.inputs[i], "input", findings);
  }
}

void check_loop_results(const CheckedGraph& checked, Findings& findings) {
  for (NodeId id : checked.index.order()) {
    const Node& node = checked.graph.node(id);
    if (!is_loop(node)) continue;
    const Region& body = checked.graph.region(node.body);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      check_same_type(checked, id, body.results[i], "result", body.params[i], "param", findings);
      check_same_type(checked, id, node.outputs[i], "output", body.params[i], "param", findings);
    }
  }
}

void check_output_types(const CheckedGraph& checked, Findings& findings) {
  std::vector<Type> inputs;
  for (NodeId id : checked.index.order()) {
    const Node& node = checked.graph.node(id);
    if (is_loop(node)) continue;
    inputs.resize(node.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = checked.graph.value(node.inputs[i]).type;
    std::vector<Type> expected;
    try {
      expected = infer_call(*node.op, inputs, node.attrs);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      findings.add(id, "the shape rule refuses the inputs: {}", error.what());
      continue;
    }
    if (expected.size() != node.outputs.size())
      findings.add(id, "the node has {} outputs, the shape rule gives {}", node.outputs.size(), expected.size());
    for (size_t i = 0; i < std::min(expected.size(), node.outputs.size()); ++i)
      if (const Type& actual = checked.graph.value(node.outputs[i]).type; actual != expected[i])
        findings.add(id, "output %{} is {}, the shape rule gives {}", node.outputs[i],
                     print_type(checked.graph, actual), print_type(checked.graph, expected[i]));
  }
}

}  // namespace headroom
