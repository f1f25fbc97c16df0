// The rules of the IR as a table of named checks, run after every pass.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace headroom {

// One broken rule: `message` says what is wrong, `node` where (kNone if no single node is the cause).
struct Violation {
  std::string_view rule;
  NodeId node = kNone;
  std::string message;
};

struct RuleInfo {
  std::string_view name;
  std::string_view description;
};

// Name and one-line description of every rule, in the order of the checks.
std::vector<RuleInfo> verifier_rules();

// Every violation, in the order of the rules and then of the programs; at most 64. The structural rules come first; the
// first of them that is broken ends the checks. Nodes that no program reaches are checked only for their ids and
// shapes. Linear except for sorting names. Never throws for a broken graph, whatever its ids.
std::vector<Violation> verify(const Graph& graph);

// Throws InternalError if a rule is broken, naming `culprit` (the pass that ran last), the first broken rule, the text
// of the node, and the number of further violations.
void verify_or_throw(const Graph& graph, std::string_view culprit);
// The same for a graph whose program "forward" still takes its accumulator as a param, as it does until autodiff has
// run.
void verify_forward_or_throw(const Graph& graph, std::string_view culprit);

}  // namespace headroom
