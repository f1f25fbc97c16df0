// The techniques that doctor knows, one record each: what a remedy takes and changes, apart from where its option is
// spelt (option_text.h) and when it helps (rules_*.cpp).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "doctor/config/job.h"
#include "passes/pass_info.h"

namespace headroom::doctor {

struct Technique {
  std::string_view name;
  std::string_view row;  // of the table in docs/doctor_remedies.md; several are separated by spaces
  TechniqueKind kind;
  std::string_view effort;  // flag, config, code, install, hardware
  double slowdown;          // seconds per sequence against before; below 1 is faster
  double accuracy_cost;     // what it may do to the result, in the unit of cost_of: 0 nothing, 15 another model
  std::string_view effect;
  std::string_view needs;
  const PassInfo* pass = nullptr;  // headroom's own technique of the same idea
};

std::span<const Technique> all_techniques();
// The record of that name. An unknown name is an InternalError.
const Technique& technique(std::string_view name);

// What it takes in that system: one that brings a technique with it needs no package for it.
std::string needs_in(const Technique& technique, System system);

}  // namespace headroom::doctor
