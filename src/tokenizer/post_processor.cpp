#include "tokenizer/post_processor.h"

#include "base/error.h"

namespace headroom {
namespace {

constexpr int kMaxDepth = 8;
constexpr size_t kMaxIds = 1024;

// The ids of TemplateProcessing.special_tokens[name].
void append_special(const Component& component, const std::string& name, std::vector<int32_t>& ids) {
  const Component tokens = component.member("special_tokens");
  if (!tokens.has(name.c_str())) tokens.refuse(fmt::format("\"{}\" is missing", name));
  for (const Component& id : tokens.member(name.c_str()).list("ids")) {
    const Json& value = id.value();
    if (!value.is_number_unsigned() || value.get<uint64_t>() > INT32_MAX) id.refuse("is no token id");
    if (ids.size() == kMaxIds) id.refuse(fmt::format("more than {} special tokens", kMaxIds));
    ids.push_back(value.get<int32_t>());
  }
}

void add_template(const Component& component, PostProcessor& result) {
  PostProcessor part;
  bool behind = false;
  for (const Component& piece : component.list("single")) {
    if (piece.has("Sequence")) {
      if (behind) piece.refuse("the text comes twice");
      behind = true;
    } else {
      append_special(component, piece.member("SpecialToken").text("id"), behind ? part.suffix : part.prefix);
    }
  }
  if (!behind) component.member("single").refuse("has no place for the text (Sequence)");
  result.prefix.insert(result.prefix.begin(), part.prefix.begin(), part.prefix.end());
  result.suffix.insert(result.suffix.end(), part.suffix.begin(), part.suffix.end());
}

// ["</s>", 2]
int32_t id_of_pair(const Component& component, const char* key) {
  const Component pair = component.member(key);
  const Json& value = pair.value();
  const bool fits =
      value.is_array() && value.size() == 2 && value[1].is_number_unsigned() && value[1].get<uint64_t>() <= INT32_MAX;
  if (!fits) pair.refuse("is no pair of token and id");
  return value[1].get<int32_t>();
}

void add(const Component& component, int depth, PostProcessor& result) {
  if (depth > kMaxDepth) component.refuse("is nested too deep");
  const std::string type = component.type();
  if (type == "Sequence") {
    for (const Component& part : component.list("processors")) add(part, depth + 1, result);
  } else if (type == "TemplateProcessing") {
    add_template(component, result);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    result.prefix.insert(result.prefix.begin(), id_of_pair(component, "cls"));
    result.suffix.push_back(id_of_pair(component, "sep"));
  } else if (type != "ByteLevel") {  // ByteLevel corrects offsets, which headroom does not give
    component.refuse_type("Sequence, TemplateProcessing, RobertaProcessing, BertProcessing, ByteLevel");
  }
  if (result.prefix.size() + result.suffix.size() > kMaxIds)
    component.refuse(fmt::format("more than {} special tokens", kMaxIds));
}

}  // namespace

PostProcessor PostProcessor::read(const Component& component) {
  PostProcessor result;
  add(component, 0, result);
  return result;
}

}  // namespace headroom
