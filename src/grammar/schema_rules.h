// The rules of a schema's parts, one for each part that is used.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "grammar/json_values.h"
#include "grammar/schema_merge.h"

namespace headroom {

// A part of a schema, which keeps the document that contains it alive.
using SchemaPart = std::shared_ptr<const OrderedJson>;

struct SchemaPlace {
  SchemaPart schema;
  std::string pointer;  // names it in errors
};

class SchemaRules {
 public:
  SchemaRules(SchemaPart root, std::string source, AutomatonBuilder& builder, std::vector<std::string>& notes);

  // Makes the rules of the whole schema.
  void make();

  // The rule of the schema at a position; it is made later.
  GrammarRuleId rule_of(const std::string& pointer, SchemaPart schema);

  AutomatonBuilder& builder() { return builder_; }
  JsonValues& values() { return values_; }
  // Notes that something of the schema is not enforced.
  void note(std::string text);
  // A keyword with a count. Throws Error(usage) if it is not one.
  int64_t count_of(const OrderedJson& schema, const char* keyword, int64_t otherwise) const;

 private:
  struct Waiting {
    GrammarRuleId rule;
    std::string pointer;
    SchemaPart schema;
  };
  void place(const std::string& pointer);
  GrammarRuleId rule_of_merged(const std::string& pointer, OrderedJson schema);
  GrammarStateId states_of(const Waiting& waiting);
  std::vector<GrammarStateId> alternatives(const OrderedJson& schema, const std::string& keyword,
                                           const SchemaPart& owner, const std::string& pointer);
  std::vector<std::string> types_of(const OrderedJson& schema);
  void check_keywords(const OrderedJson& schema);
  GrammarStateId plain_states(const SchemaPlace& at);
  GrammarStateId given_states(const OrderedJson& schema, const std::vector<std::string>& types);
  GrammarStateId type_states(const SchemaPlace& at, const std::string& type);

  AutomatonBuilder& builder_;
  std::string source_;
  SchemaPart root_;
  SchemaMerge merge_;
  JsonValues values_;
  std::vector<std::string>& notes_;
  std::map<std::string, GrammarRuleId> rules_;
  std::deque<Waiting> waiting_;
  int64_t place_bytes_ = 0;
};

}  // namespace headroom
