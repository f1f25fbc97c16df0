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
    if (!value.is_number_unsigned() || value.get<uint64_t>() > INT32_MAX) id.refuse("is not a token id");
    if (ids.size() == kMaxIds) id.refuse(fmt::format("more than {} special tokens", kMaxIds));
    ids.push_back(value.get<int32_t>());
  }
}

// 0 or 1; 2 for anything else.
int64_t type_of(const Component& piece) {
  if (!piece.has("type_id")) return 2;
  const Json& value = piece.member("type_id").value();
  return value.is_number_unsigned() && value.get<uint64_t>() <= 1 ? value.get<int64_t>() : 2;
}

std::optional<PairTemplate> pair_template(const Component& component) {
  if (!component.has("pair") || component.member("pair").value().is_null()) return std::nullopt;
  PairTemplate pair;
  int texts = 0;
  int64_t last = 0;
  bool plain = true;
  for (const Component& piece : component.list("pair")) {
    const bool is_text = piece.has("Sequence");
    const Component inside = piece.member(is_text ? "Sequence" : "SpecialToken");
    const int64_t type = type_of(inside);
    plain = plain && type >= last && type <= 1;
    last = type;
    if (is_text) {
      plain = plain && texts < 2 && inside.text("id") == (texts == 0 ? "A" : "B");
      (texts == 0 ? pair.first_of_type_0 : pair.second_of_type_0) = type == 0;
      ++texts;
      continue;
    }
    std::vector<int32_t>& ids = texts == 0 ? pair.prefix : texts == 1 ? pair.middle : pair.suffix;
    const size_t before = ids.size();
    append_special(component, inside.text("id"), ids);
    if (type == 0) pair.specials_of_type_0 += static_cast<int64_t>(ids.size() - before);
  }
  if (!plain || texts != 2) return std::nullopt;
  return pair;
}

void add_template(const Component& component, PostProcessor& result) {
  PostProcessor part;
  bool behind = false;
  for (const Component& piece : component.list("single")) {
    if (piece.has("Sequence")) {
      if (behind) piece.refuse("the text appears twice");
      behind = true;
    } else {
      append_special(component, piece.member("SpecialToken").text("id"), behind ? part.suffix : part.prefix);
    }
  }
  if (!behind) component.member("single").refuse("has no place for the text (Sequence)");
  result.prefix.insert(result.prefix.begin(), part.prefix.begin(), part.prefix.end());
  result.suffix.insert(result.suffix.end(), part.suffix.begin(), part.suffix.end());
  result.pair = pair_template(component);
}

// BERT: [CLS] first [SEP] second [SEP], type 1 from the second text on; RoBERTa: <s> first </s></s> second </s>, all of
// type 0.
PairTemplate encoder_pair(bool roberta, int32_t cls, int32_t sep) {
  if (roberta) return {{cls}, {sep, sep}, {sep}, 4, true, true};
  return {{cls}, {sep}, {sep}, 2, true, false};
}

// ["</s>", 2]
int32_t id_of_pair(const Component& component, const char* key) {
  const Component pair = component.member(key);
  const Json& value = pair.value();
  const bool fits =
      value.is_array() && value.size() == 2 && value[1].is_number_unsigned() && value[1].get<uint64_t>() <= INT32_MAX;
  if (!fits) pair.refuse("is not a pair of token and id");
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
    const int32_t cls = id_of_pair(component, "cls"), sep = id_of_pair(component, "sep");
    result.prefix.insert(result.prefix.begin(), cls);
    result.suffix.push_back(sep);
    result.pair = encoder_pair(type == "RobertaProcessing", cls, sep);
  } else if (type != "ByteLevel") {  // ByteLevel corrects offsets, which headroom does not return
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
