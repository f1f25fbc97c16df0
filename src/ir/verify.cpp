#include "ir/verify.h"

#include <new>

#include "base/error.h"
#include "ir/print.h"
#include "ir/verify_rules.h"

namespace headroom {
namespace {

struct StructuralRule {
  RuleInfo info;
  void (*check)(const Graph&, Findings&);
};

struct Rule {
  RuleInfo info;
  void (*check)(const CheckedGraph&, Findings&);
};

constexpr StructuralRule kStructuralRules[] = {
    {{"ids-in-range", "every id names an existing value, node or region, and every node has an op"},
     check_ids_in_range},
    {{"nested-once", "a node is listed in one region, a region belongs to one program or loop, nesting is bounded"},
     check_nested_once},
    {{"loop-shape", "a node has a body exactly when it is a loop; inputs, params, results, outputs are equally many"},
     check_loop_shape},
    {{"symbol-in-range", "symbols have unique names and a bound of at least one; dimensions use declared symbols"},
     check_symbol_in_range},
    {{"type-well-formed", "dimensions, storage and shards of a type make sense and its size does not overflow"},
     check_type_well_formed},
    {{"node-block-range", "a node's block is none or a small number"}, check_node_block_range},
    {{"program-names-unique", "no two programs share a name"}, check_program_names},
    {{"names-unique-among-persistent", "no two persistent values share a name"}, check_persistent_names},
};

constexpr std::string_view kRegionParams = "region-params-match-inputs";

constexpr Rule kRules[] = {
    {{"ssa-single-definition", "a value is defined once: by one node output or one region param"},
     check_single_definition},
    {{"persistent-has-no-producer", "a persistent value is not the output of a node or the param of a region"},
     check_persistent_has_no_producer},
    {{"defined-before-use", "what a node or a region's end reads is defined before it, in the same or an outer region"},
     check_defined_before_use},
    {{kRegionParams, "the params of a loop's body have the types of its inputs; programs have none"},
     check_region_params},
    {{"loop-results-match-params", "the results of a loop's body and the loop's outputs have the params' types"},
     check_loop_results},
    {{"output-types-match-shape-rule", "the outputs of a node have the types that its op's shape rule gives"},
     check_output_types},
    {{"must-alias-in-range", "an op's alias rule names outputs and inputs that the node has"}, check_alias_in_range},
    {{"must-alias-types-agree", "an output has the bytes and the tier of the input whose storage it must use"},
     check_alias_types},
    {{"must-alias-single-owner",
      "one node gives a value's storage to at most one output, and an output has one storage"},
     check_overwritten_once},
    {{"must-alias-input-dead-after", "a value that a node overwrites in place is not read after it in that program"},
     check_overwritten_dead},
    {{"loop-results-keep-storage", "a loop's result does not use the storage of another param, result or outer value"},
     check_loop_storage},
    {{"host-reached-by-copies", "a value on the host or on disk is read, and written in place, only by copies"},
     check_host_access},
    {{"start-has-wait", "each output of a *_start op is read once, all by one wait in the same region"},
     check_start_has_wait},
    {{"start-source-unchanged", "what a *_start op reads is not overwritten before its wait"},
     check_start_source_unchanged},
};

}  // namespace

CheckedGraph::CheckedGraph(const Graph& checked) : graph(checked), index(checked) {
  for (NodeId id : index.order()) {
    const Node& node = graph.node(id);
    std::vector<Alias> aliases;
    try {
      aliases = must_aliases(node);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      bad_aliases.emplace_back(id, error.what());
    }
    for (const Alias& alias : aliases) {
      const bool known = alias.input >= 0 && static_cast<size_t>(alias.input) < node.inputs.size() &&
                         alias.output >= 0 && static_cast<size_t>(alias.output) < node.outputs.size();
      if (known)
        overwrites.push_back({id, alias.output, alias.input, node.inputs[static_cast<size_t>(alias.input)]});
      else
        bad_aliases.emplace_back(id, fmt::format("output {} must alias input {}, the node has {} outputs and {} inputs",
                                                 alias.output, alias.input, node.outputs.size(), node.inputs.size()));
    }
  }
}

std::vector<RuleInfo> verifier_rules() {
  std::vector<RuleInfo> out;
  for (const StructuralRule& rule : kStructuralRules) out.push_back(rule.info);
  for (const Rule& rule : kRules) out.push_back(rule.info);
  return out;
}

std::vector<Violation> verify(const Graph& graph) {
  Findings findings;
  for (const StructuralRule& rule : kStructuralRules) {
    findings.start(rule.info.name);
    rule.check(graph, findings);
    if (!findings.empty()) return findings.take();  // each rule relies on those before it
  }
  const CheckedGraph checked(graph);
  for (const Rule& rule : kRules) {
    findings.start(rule.info.name);
    rule.check(checked, findings);
    if (findings.full()) break;
  }
  return findings.take();
}

namespace {

void throw_any(const Graph& graph, std::string_view culprit, const std::vector<Violation>& violations) {
  if (violations.empty()) return;
  const Violation& first = violations.front();
  std::string message = fmt::format("after {}: rule {}: {}", culprit, first.rule, first.message);
  if (first.node != kNone) message += fmt::format(", at node {}: {}", first.node, print_node(graph, first.node));
  if (violations.size() > 1) message += fmt::format(" (and {} more violations)", violations.size() - 1);
  throw InternalError(message);
}

}  // namespace

void verify_or_throw(const Graph& graph, std::string_view culprit) { throw_any(graph, culprit, verify(graph)); }

void verify_forward_or_throw(const Graph& graph, std::string_view culprit) {
  std::vector<Violation> violations = verify(graph);
  std::erase_if(violations, [](const Violation& v) {
    return v.rule == kRegionParams && v.node == kNone && v.message.starts_with("program forward ");
  });
  throw_any(graph, culprit, violations);
}

}  // namespace headroom
