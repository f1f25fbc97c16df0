// The techniques that doctor knows, one record each: what a remedy costs and changes. option_text.h has the spelling of
// its options, rules_*.cpp say when it helps.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "doctor/config/job.h"
#include "passes/pass_info.h"

namespace headroom::doctor {

// What a technique does to the result: its kind. If headroom has a technique with the same idea, its record says so.
struct Arithmetic {
  constexpr Arithmetic(TechniqueKind of) : kind(of) {}
  constexpr Arithmetic(const PassInfo& same_idea) : kind(same_idea.kind), pass(&same_idea) {}

  TechniqueKind kind;
  const PassInfo* pass = nullptr;  // headroom's
};

struct Technique {
  std::string_view name;
  std::string_view row;  // of the table in docs/doctor_remedies.md; several, separated by spaces
  Arithmetic arithmetic;
  std::string_view effort;      // flag, config, code, install, hardware
  double slowdown;              // time per sequence relative to before; below 1 is faster
  double accuracy_cost;         // loss in the result, in the unit of cost_of: 0 none, 15 another model
  std::string_view effect;      // in other systems; what headroom does is in the description of its PassInfo
  std::string_view needs = {};  // of other software
};

std::span<const Technique> all_techniques();
// The record with that name. An unknown name is an InternalError.
const Technique& technique(std::string_view name);

// What it needs in that system: one that includes the technique needs no package for it.
std::string needs_in(const Technique& technique, System system);

}  // namespace headroom::doctor
