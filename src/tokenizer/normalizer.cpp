#include "tokenizer/normalizer.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/normalizer_steps.h"
#include "tokenizer/precompiled_step.h"

namespace headroom {
namespace {

constexpr int kMaxDepth = 8;
constexpr size_t kMaxSteps = 32;
// Limits for replacement texts, so that a hostile file cannot make a text grow without bound.
constexpr size_t kMaxContentBytes = 64;
constexpr int64_t kMostGrowth = 4096;

std::string bounded_text(const Component& component, const char* key) {
  std::string text = component.text(key);
  if (text.size() > kMaxContentBytes)
    component.member(key).refuse(fmt::format("has more than {} bytes", kMaxContentBytes));
  return text;
}

std::unique_ptr<const NormalizerStep> read_replace(const Component& component) {
  std::string content = bounded_text(component, "content");
  const Component pattern = component.member("pattern");
  if (!pattern.has("String"))
    return std::make_unique<ReplaceStep>(Pattern::compile(pattern.text("Regex"), pattern.place()), std::move(content));
  std::string replaced = pattern.text("String");
  if (replaced.empty()) pattern.refuse("is empty");
  return std::make_unique<ReplaceStep>(std::move(replaced), std::move(content));
}

std::optional<NormalForm> form_of_name(std::string_view name) {
  if (name == "NFC") return NormalForm::nfc;
  if (name == "NFD") return NormalForm::nfd;
  if (name == "NFKC") return NormalForm::nfkc;
  if (name == "NFKD") return NormalForm::nfkd;
  return std::nullopt;
}

// The step of this name that has no options, or null.
std::unique_ptr<const NormalizerStep> plain_step(std::string_view name) {
  if (const auto form = form_of_name(name)) return std::make_unique<FormStep>(*form);
  if (name == "Lowercase") return std::make_unique<CharacterStep>(lowercase_character, 2);
  if (name == "StripAccents") return std::make_unique<CharacterStep>(strip_accent);
  if (name == "Nmt") return std::make_unique<CharacterStep>(nmt_character);
  return nullptr;
}

}  // namespace

Normalizer Normalizer::read(const Component& component) {
  Normalizer normalizer;
  normalizer.add(component, 0);
  if (normalizer.growth() > kMostGrowth) component.refuse("may make a text thousands of times longer");
  return normalizer;
}

void Normalizer::push(std::unique_ptr<const NormalizerStep> step) { steps_.push_back(std::move(step)); }

void Normalizer::add(const Component& component, int depth) {
  if (depth > kMaxDepth || steps_.size() >= kMaxSteps) component.refuse("has too many steps");
  const std::string type = component.type();
  if (type == "Sequence") {
    for (const Component& step : component.list("normalizers")) add(step, depth + 1);
  } else if (type == "Prepend") {
    push(std::make_unique<PrependStep>(bounded_text(component, "prepend")));
  } else if (type == "Replace") {
    push(read_replace(component));
  } else if (type == "Strip") {
    push(std::make_unique<StripEndsStep>(component.flag("strip_left", true), component.flag("strip_right", true)));
  } else if (type == "BertNormalizer") {
    add_bert(component);
  } else if (type == "Precompiled") {
    push(std::make_unique<PrecompiledStep>(component));
  } else if (auto step = plain_step(type)) {
    push(std::move(step));
  } else {
    component.refuse_type(
        "Sequence, NFC, NFD, NFKC, NFKD, Prepend, Replace, Strip, StripAccents, Lowercase, Nmt, BertNormalizer, "
        "Precompiled");
  }
}

void Normalizer::add_bert(const Component& component) {
  const bool lowercase = component.flag("lowercase", true);
  if (component.flag("clean_text", true)) push(std::make_unique<CharacterStep>(clean_character));
  if (component.flag("handle_chinese_chars", true)) push(std::make_unique<CharacterStep>(space_chinese_character, 2));
  if (component.flag("strip_accents", lowercase)) {
    push(std::make_unique<FormStep>(NormalForm::nfd));
    push(std::make_unique<CharacterStep>(strip_bert_accent));
  }
  if (lowercase) push(plain_step("Lowercase"));
}

std::string Normalizer::apply(std::string_view text, bool continued, bool* drops_front) const {
  std::string result(text);
  for (const auto& step : steps_) {
    if (drops_front != nullptr && !result.empty()) *drops_front = *drops_front || step->drops_front(result);
    result = step->apply(std::move(result), continued);
  }
  return result;
}

bool Normalizer::allows_cut(BoundaryChoices& boundaries) const {
  for (const auto& step : steps_) {
    BoundaryChoices after;
    for (const Boundary& boundary : boundaries)
      if (!step->allows_cut(boundary, after)) return false;
    if (after.overflows()) return false;
    boundaries = after;
  }
  return true;
}

int64_t Normalizer::growth() const {
  int64_t growth = 1;
  for (const auto& step : steps_) growth = std::min(growth * step->growth(), kMostGrowth + 1);
  return growth;
}

int64_t Normalizer::prepended() const {
  int64_t bytes = 0;
  for (const auto& step : steps_) bytes += step->prepended() * growth();
  return bytes;
}

int64_t Normalizer::memory_bytes() const {
  int64_t bytes = static_cast<int64_t>(steps_.capacity() * sizeof(steps_[0]));
  for (const auto& step : steps_) bytes += step->memory_bytes() + 256;  // the step itself
  return bytes;
}

void replace_literal(std::string_view text, std::string_view replaced, std::string_view content, std::string& out) {
  size_t at = 0;
  for (size_t found; (found = text.find(replaced, at)) != std::string_view::npos; at = found + replaced.size())
    out.append(text, at, found - at).append(content);
  out.append(text, at);
}

void replace_pattern(std::string_view text, const Pattern& pattern, std::string_view content, std::string& out) {
  size_t at = 0;
  while (const std::optional<PatternMatch> match = pattern.find(text, at)) {
    out.append(text, at, match->begin - at).append(content);
    at = match->end;
  }
  out.append(text, at);
}

}  // namespace headroom
