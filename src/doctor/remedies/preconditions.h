// What a remedy presupposes: one record per technique, and one per phrase of a remedy's text that says more than its
// technique. A remedy whose facts the inputs deny is refused, with the reason; one whose facts they leave open names
// its condition, and comes after those that they show.
#pragma once

#include <string_view>

#include "doctor/remedies/facts.h"
#include "doctor/remedies/rules.h"

namespace headroom::doctor {

// A set of facts, one bit each.
using FactSet = unsigned;
constexpr FactSet fact_bit(Fact fact) { return 1U << static_cast<unsigned>(fact); }
constexpr bool holds_fact(FactSet set, Fact fact) { return (set & fact_bit(fact)) != 0; }

struct Precondition {
  std::string_view technique;  // empty: any
  std::string_view phrases;    // of the remedy's text, separated by '|'; one of them stands there
  FactSet facts;
  std::string_view unless = {};  // phrases beside which the text holds without them
};

// What the technique presupposes, whatever the text of its remedy. Each technique has a record: another name is an
// InternalError.
FactSet presupposed_by(std::string_view technique);
// That and what the phrases of the remedy's text presuppose.
FactSet presupposed_by(const Remedy& remedy);

// Refuses the remedies whose facts are denied.
void check_preconditions(const Facts& facts, Findings& findings);
// Puts those whose facts are open a little later, and their condition before their text.
void say_conditions(const Facts& facts, Findings& findings);

}  // namespace headroom::doctor
