// What the verifier's checks read and how they report. Private to the verifier.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "ir/graph_index.h"
#include "ir/verify.h"

namespace headroom {

constexpr size_t kMaxViolations = 64;

// Collects violations under the name of the rule being checked.
class Findings {
 public:
  void start(std::string_view rule) { rule_ = rule; }
  bool full() const { return violations_.size() >= kMaxViolations; }
  bool empty() const { return violations_.empty(); }
  template <typename... Args>
  void add(NodeId node, fmt::format_string<Args...> format, Args&&... args) {
    if (!full()) violations_.push_back({rule_, node, fmt::format(format, std::forward<Args>(args)...)});
  }
  std::vector<Violation> take() { return std::move(violations_); }

 private:
  std::string_view rule_;
  std::vector<Violation> violations_;
};

// Output `output` of `node` uses the storage of its input `input`: the node overwrites `value`.
struct Overwrite {
  NodeId node = kNone;
  int32_t output = 0;
  int32_t input = 0;
  ValueId value = kNone;
};

// A graph whose structural rules hold.
struct CheckedGraph {
  explicit CheckedGraph(const Graph& checked);

  const Graph& graph;
  GraphIndex index;
  std::vector<Overwrite> overwrites;                        // in ascending time
  std::vector<std::pair<NodeId, std::string>> bad_aliases;  // nodes whose alias rule names a missing operand
};

// Structural rules: the graph can be walked and its types have sizes.
void check_ids_in_range(const Graph& graph, Findings& findings);
void check_nested_once(const Graph& graph, Findings& findings);
void check_loop_shape(const Graph& graph, Findings& findings);
void check_symbol_in_range(const Graph& graph, Findings& findings);
void check_type_well_formed(const Graph& graph, Findings& findings);
void check_node_block_range(const Graph& graph, Findings& findings);
void check_program_names(const Graph& graph, Findings& findings);
void check_persistent_names(const Graph& graph, Findings& findings);

// Definitions and types.
void check_single_definition(const CheckedGraph& checked, Findings& findings);
void check_persistent_has_no_producer(const CheckedGraph& checked, Findings& findings);
void check_defined_before_use(const CheckedGraph& checked, Findings& findings);
void check_region_params(const CheckedGraph& checked, Findings& findings);
void check_loop_results(const CheckedGraph& checked, Findings& findings);
void check_output_types(const CheckedGraph& checked, Findings& findings);

// Storage.
void check_alias_in_range(const CheckedGraph& checked, Findings& findings);
void check_alias_types(const CheckedGraph& checked, Findings& findings);
void check_overwritten_once(const CheckedGraph& checked, Findings& findings);
void check_overwritten_dead(const CheckedGraph& checked, Findings& findings);
void check_loop_storage(const CheckedGraph& checked, Findings& findings);
void check_host_access(const CheckedGraph& checked, Findings& findings);
void check_start_has_wait(const CheckedGraph& checked, Findings& findings);
void check_start_source_unchanged(const CheckedGraph& checked, Findings& findings);

}  // namespace headroom
