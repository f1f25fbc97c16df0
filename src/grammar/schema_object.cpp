#include "grammar/schema_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

namespace headroom {
namespace {

struct ObjectMember {
  std::string name;
  GrammarRuleId rule;
  bool required;
};

// The keywords of an object's schema.
struct ObjectParts {
  std::vector<ObjectMember> members;
  std::optional<GrammarRuleId> additional;  // the rule of additional members
};

// "a/b~c" as a part of a JSON pointer.
std::string pointer_part(const std::string& name) {
  std::string out;
  for (const char c : name) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

std::set<std::string> required_names(SchemaRules& rules, const OrderedJson& schema) {
  std::set<std::string> names;
  if (!schema.contains("required")) return names;
  if (!schema.at("required").is_array()) rules.builder().refuse("required is not a list");
  for (const OrderedJson& name : schema.at("required")) {
    if (!name.is_string()) rules.builder().refuse("required is not a list of texts");
    names.insert(name.get<std::string>());
  }
  return names;
}

// The described ones; the rest of `required` is not.
void add_properties(SchemaRules& rules, const SchemaPlace& at, std::set<std::string>& required, ObjectParts& parts) {
  const OrderedJson& properties = at.schema->at("properties");
  if (!properties.is_object()) rules.builder().refuse("properties is not an object");
  for (const auto& item : properties.items()) {
    const bool is_required = required.erase(item.key()) > 0;
    if (item.value() == false && !is_required) continue;
    const std::string pointer = at.pointer + "/properties/" + pointer_part(item.key());
    parts.members.push_back({item.key(), rules.rule_of(pointer, {at.schema, &item.value()}), is_required});
  }
}

ObjectParts object_parts(SchemaRules& rules, const SchemaPlace& at) {
  const OrderedJson& schema = *at.schema;
  ObjectParts parts;
  std::set<std::string> required = required_names(rules, schema);
  const auto any = std::make_shared<const OrderedJson>(true);
  const bool closed = schema.contains("properties");
  if (closed) add_properties(rules, at, required, parts);
  const OrderedJson* more = schema.contains("additionalProperties") ? &schema.at("additionalProperties")
                            : closed                                ? nullptr
                                                                    : any.get();
  if (more && *more == false) more = nullptr;
  if (more)
    parts.additional =
        rules.rule_of(at.pointer + "/additionalProperties", more == any.get() ? any : SchemaPart{at.schema, more});
  for (const std::string& name : required) {  // not described by a property
    if (!parts.additional && schema.contains("additionalProperties"))
      rules.builder().refuse(fmt::format("\"{}\" is required, and neither a property nor an additional one", name));
    if (!parts.additional) parts.additional = rules.rule_of(at.pointer + "/required", any);
    parts.members.push_back({name, *parts.additional, true});
  }
  if (closed && !schema.contains("additionalProperties")) parts.additional.reset();
  return parts;
}

// Bounds on the number of members are accepted if they follow from the rest.
void check_member_counts(SchemaRules& rules, const OrderedJson& schema, const ObjectParts& parts) {
  const auto required = std::count_if(parts.members.begin(), parts.members.end(),
                                      [](const ObjectMember& member) { return member.required; });
  if (rules.count_of(schema, "minProperties", 0) > required)
    rules.builder().refuse("minProperties above the number of required properties is not supported",
                           "list the properties that are required");
  const int64_t most = rules.count_of(schema, "maxProperties", INT64_MAX);
  if (parts.additional ? most < INT64_MAX : most < static_cast<int64_t>(parts.members.size()))
    rules.builder().refuse("maxProperties below what the schema allows otherwise is not supported");
}

}  // namespace

GrammarStateId schema_object_states(SchemaRules& rules, const SchemaPlace& at) {
  const std::string place = rules.builder().place();
  const ObjectParts parts = object_parts(rules, at);
  rules.builder().at(place);
  check_member_counts(rules, *at.schema, parts);
  AutomatonBuilder& builder = rules.builder();
  JsonValues& values = rules.values();
  const GrammarStateId close = builder.literal("}", AutomatonBuilder::end());
  // The continuation if no member has been written yet, and after one.
  GrammarStateId first = close, behind = values.space(close);
  if (parts.additional) {
    std::set<std::string> names;
    for (const ObjectMember& member : parts.members) names.insert(member.name);
    const GrammarStateId loop = builder.open_loop();
    const GrammarStateId value = values.space(builder.call(*parts.additional, loop));
    const GrammarStateId pair = builder.call(values.key_other_than(names), builder.literal(":", value));
    builder.close_loop(loop, builder.literal(",", values.space(pair)), behind);
    behind = loop;
    first = builder.either(pair, close);
  }
  for (size_t i = parts.members.size(); i > 0; --i) {
    const ObjectMember& member = parts.members[i - 1];
    const GrammarStateId pair = values.member(member.name, builder.call(member.rule, behind));
    const GrammarStateId next = builder.literal(",", values.space(pair));
    behind = member.required ? next : builder.either(next, behind);
    first = member.required ? pair : builder.either(pair, first);
  }
  return builder.literal("{", values.space(first));
}

namespace {

// The rule of each element: those of the prefix, then one for all others, if any number may follow.
struct ArrayParts {
  std::vector<GrammarRuleId> prefix;
  std::optional<GrammarRuleId> others;
};

ArrayParts array_parts(SchemaRules& rules, const SchemaPlace& at) {
  const OrderedJson& schema = *at.schema;
  const auto any = std::make_shared<const OrderedJson>(true);
  ArrayParts parts;
  const bool listed = schema.contains("items") && schema.at("items").is_array();
  const char* prefix = listed ? "items" : "prefixItems";
  const char* others = listed ? "additionalItems" : "items";
  if (schema.contains(prefix)) {
    if (!schema.at(prefix).is_array()) rules.builder().refuse(fmt::format("{} is not a list", prefix));
    for (size_t i = 0; i < schema.at(prefix).size(); ++i)
      parts.prefix.push_back(
          rules.rule_of(fmt::format("{}/{}/{}", at.pointer, prefix, i), {at.schema, &schema.at(prefix)[i]}));
  }
  const OrderedJson* rest = schema.contains(others) ? &schema.at(others) : any.get();
  if (*rest != false)
    parts.others =
        rules.rule_of(fmt::format("{}/{}", at.pointer, others), rest == any.get() ? any : SchemaPart{at.schema, rest});
  return parts;
}

}  // namespace

GrammarStateId schema_array_states(SchemaRules& rules, const SchemaPlace& at) {
  AutomatonBuilder& builder = rules.builder();
  JsonValues& values = rules.values();
  const std::string place = builder.place();
  const ArrayParts parts = array_parts(rules, at);
  builder.at(place);
  const auto prefix = static_cast<int64_t>(parts.prefix.size());
  const int64_t least = rules.count_of(*at.schema, "minItems", 0);
  int64_t most = rules.count_of(*at.schema, "maxItems", -1);
  if (!parts.others) most = most < 0 ? prefix : std::min(most, prefix);
  if (most >= 0 && least > most)
    builder.refuse(fmt::format("an array of at least {} elements has at most {}", least, most));
  const auto element = [&](int64_t index, GrammarStateId next) {
    return builder.call(index < prefix ? parts.prefix[static_cast<size_t>(index)] : *parts.others, next);
  };
  const GrammarStateId close = builder.literal("]", AutomatonBuilder::end());
  const GrammarStateId close_behind = values.space(close);
  // Backwards from where the count no longer matters, or is at its maximum.
  int64_t count = most >= 0 ? most : std::max({least, prefix, int64_t{1}});
  GrammarStateId behind = close_behind, last = close;
  if (most < 0) {
    behind = builder.open_loop();
    builder.close_loop(behind, builder.literal(",", values.space(element(count, behind))), close_behind);
  }
  for (; count > 0; --count) {
    last = element(count - 1, behind);
    if (count > 1) {
      const GrammarStateId next = builder.literal(",", values.space(last));
      behind = count - 1 >= least ? builder.either(next, close_behind) : next;
    } else if (least == 0) {
      last = builder.either(last, close);
    }
  }
  return builder.literal("[", values.space(last));
}

}  // namespace headroom
