// JSON values as states: strings, numbers, any value, a given value; shared rules are made once.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "formats/ordered_json.h"
#include "grammar/automaton_builder.h"

namespace headroom {

// There is at most one space between JSON tokens: after { [ , : and before } ].
class JsonValues {
 public:
  // Levels of arrays and objects of a value that no schema describes.
  static constexpr int kDepth = 16;
  // Digits before and after the point of a number, at most.
  static constexpr int64_t kIntegerDigits = 18, kFractionDigits = 15;

  explicit JsonValues(AutomatonBuilder& builder) : builder_(builder) {}

  GrammarStateId space(GrammarStateId next);
  // One character of a string, plain or escaped; surrogates only in pairs.
  GrammarRuleId character();
  GrammarRuleId string();
  GrammarRuleId integer();
  GrammarRuleId number();
  GrammarRuleId value(int depth);
  GrammarRuleId object(int depth);
  GrammarRuleId array(int depth);
  // A string of so many characters.
  GrammarStateId string_of_length(int64_t least, std::optional<int64_t> most, GrammarStateId next);
  // A string that is none of `names`, without escapes.
  GrammarRuleId key_other_than(const std::set<std::string>& names);
  // A given value, with the spaces of others.
  GrammarStateId given(const OrderedJson& value, GrammarStateId next);
  // One of given values.
  GrammarStateId one_of(const std::vector<OrderedJson>& values, GrammarStateId next);
  // "name": and then `next`.
  GrammarStateId member(const std::string& name, GrammarStateId next);
  GrammarStateId digits(int64_t least, int64_t most, GrammarStateId next);

 private:
  template <typename Make>
  GrammarRuleId shared(const std::string& name, const Make& make);
  GrammarStateId integer_part(GrammarStateId next);
  GrammarStateId key_from(const std::set<std::u32string>& names, size_t at, GrammarStateId rest);

  AutomatonBuilder& builder_;
  std::map<std::string, GrammarRuleId> rules_;
};

}  // namespace headroom
