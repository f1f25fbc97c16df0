// Merges schemas that apply together into one schema: $ref and allOf are resolved.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/ordered_json.h"
#include "grammar/automaton_builder.h"

namespace headroom {

// Whether a keyword does not affect which values are valid.
bool is_annotation(std::string_view keyword);

class SchemaMerge {
 public:
  // `root` is the whole schema; both outlive this.
  SchemaMerge(const OrderedJson& root, AutomatonBuilder& builder);

  // The target of a $ref: "#", "#/$defs/name". Throws Error(usage).
  const OrderedJson& target(const OrderedJson& reference) const;
  // An equivalent schema without annotations, $ref and allOf. Throws Error(usage) if two parts cannot be expressed by
  // one schema.
  OrderedJson flat(const OrderedJson& schema, int depth = 0);

  // Counts the text of a merged schema. Throws Error(usage) if all of them exceed most_bytes() of the whole schema's
  // text.
  void count(const OrderedJson& schema);
  static int64_t most_bytes(int64_t text) { return (int64_t{16} << 10) + 16 * text; }

 private:
  OrderedJson both(OrderedJson first, const OrderedJson& second);
  void merge_keyword(const std::string& keyword, OrderedJson& value, const OrderedJson& other);

  const OrderedJson& root_;
  AutomatonBuilder& builder_;
  int64_t most_, bytes_ = 0;
};

// A list of a schema's types: those of `type`, empty if there is none.
std::vector<std::string> schema_types(const OrderedJson& schema);

}  // namespace headroom
