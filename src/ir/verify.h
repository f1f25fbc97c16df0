// The rules of the IR as a table of named checks, run after every pass.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace headroom {

// One broken rule: `message` says what is wrong, `node` where (kNone when no single node is to blame).
struct Violation {
  std::string_view rule;
  NodeId node = kNone;
  std::string message;
};

struct RuleInfo {
  std::string_view name;
  std::string_view description;
};

// Name and one-line description of every rule, in the order of checking.
std::vector<RuleInfo> verifier_rules();

// Every violation, in the order of the rules and then of the programs; at most 64. The structural rules come first:
// while one of them is broken the others are not looked at. Nodes that no program reaches are only checked for their
// ids and shapes. Linear but for sorting names; never throws for a broken graph, whatever its ids.
std::vector<Violation> verify(const Graph& graph);

// Throws InternalError when a rule is broken: it names `culprit` (the pass that ran last), the first rule, the text of
// the node, and how many more violations there are.
void verify_or_throw(const Graph& graph, std::string_view culprit);
// The same of a graph whose program "forward" still takes its accumulator as a param, as it does until autodiff has
// run.
void verify_forward_or_throw(const Graph& graph, std::string_view culprit);

}  // namespace headroom
