#include "tokenizer/normalizer.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

constexpr int kMaxDepth = 8;
constexpr size_t kMaxSteps = 32;
// Texts put in for others, so that a hostile file cannot make a text grow without bound.
constexpr size_t kMaxContentBytes = 64;
constexpr int64_t kMostGrowth = 4096;

int64_t growth_of(NormalForm form) {
  // Most bytes that one byte becomes: U+0390 (2 -> 6 bytes), and with compatibility U+FDFA (3 -> 33 bytes).
  return form == NormalForm::nfkc || form == NormalForm::nfkd ? 11 : 3;
}

std::string bounded_text(const Component& component, const char* key) {
  std::string text = component.text(key);
  if (text.size() > kMaxContentBytes)
    component.member(key).refuse(fmt::format("has more than {} bytes", kMaxContentBytes));
  return text;
}

}  // namespace

Normalizer Normalizer::read(const Component& component) {
  Normalizer normalizer;
  normalizer.add(component, 0);
  if (normalizer.growth() > kMostGrowth) component.refuse("may make a text thousands of times longer");
  return normalizer;
}

void Normalizer::add(const Component& component, int depth) {
  if (depth > kMaxDepth || steps_.size() == kMaxSteps) component.refuse("has too many steps");
  const std::string type = component.type();
  if (type == "Sequence") {
    for (const Component& step : component.list("normalizers")) add(step, depth + 1);
    return;
  }
  Step step;
  if (type == "NFC")
    step.form.emplace(NormalForm::nfc);
  else if (type == "NFD")
    step.form.emplace(NormalForm::nfd);
  else if (type == "NFKC")
    step.form.emplace(NormalForm::nfkc);
  else if (type == "NFKD")
    step.form.emplace(NormalForm::nfkd);
  else if (type == "Prepend")
    step.content = bounded_text(component, "prepend");
  else if (type == "Replace") {
    step.content = bounded_text(component, "content");
    const Component pattern = component.member("pattern");
    if (pattern.has("String"))
      step.replaced = pattern.text("String");
    else
      step.pattern = Pattern::compile(pattern.text("Regex"), pattern.place());
    if (pattern.has("String") && step.replaced.empty()) pattern.refuse("is empty");
  } else {
    component.refuse_type("Sequence, NFC, NFD, NFKC, NFKD, Prepend, Replace");
  }
  steps_.push_back(std::move(step));
}

std::string Normalizer::apply(std::string_view text, bool continued) const {
  std::string result(text);
  for (const Step& step : steps_) {
    if (step.form) {
      result = step.form->convert(result);
    } else if (!step.replaced.empty() || step.pattern) {
      std::string replaced;
      replaced.reserve(result.size());
      if (step.pattern)
        replace_pattern(result, *step.pattern, step.content, replaced);
      else
        replace_literal(result, step.replaced, step.content, replaced);
      result = std::move(replaced);
    } else if (!result.empty() && !continued) {
      result.insert(0, step.content);
    }
  }
  return result;
}

bool Normalizer::allows_cut(Boundary& boundary) const {
  return std::all_of(steps_.begin(), steps_.end(), [&](const Step& step) { return allows_cut(step, boundary); });
}

bool Normalizer::allows_cut(const Step& step, Boundary& boundary) {
  if (step.form) return step.form->is_inert(boundary.left) && step.form->is_inert(boundary.right);
  if (step.pattern)
    return !step.pattern->mentions(boundary.left) && !step.pattern->mentions(boundary.right) &&
           step.pattern->keeps_apart(boundary.left, boundary.right);
  if (step.replaced.empty()) return true;
  const bool one_character = decode_utf8(step.replaced, 0).bytes == step.replaced.size();
  for (char32_t* side : {&boundary.left, &boundary.right}) {
    std::string character;
    append_utf8(*side, character);
    if (step.replaced.find(character) == std::string::npos) continue;
    if (!one_character || step.content.empty()) return false;
    const bool left = side == &boundary.left;
    *side = decode_utf8(step.content, left ? previous_utf8(step.content, step.content.size()) : 0).code;
  }
  return true;
}

int64_t Normalizer::growth() const {
  int64_t growth = 1;
  for (const Step& step : steps_) {
    int64_t factor = 1;
    if (step.form) factor = growth_of(step.form->form());
    const auto content = static_cast<int64_t>(step.content.size());
    if (step.pattern) factor = std::max<int64_t>(1, content);
    if (!step.replaced.empty()) {
      const auto replaced = static_cast<int64_t>(step.replaced.size());
      factor = std::max<int64_t>(1, (content + replaced - 1) / replaced);
    }
    growth = std::min(growth * factor, kMostGrowth + 1);
  }
  return growth;
}

int64_t Normalizer::prepended() const {
  int64_t bytes = 0;
  for (const Step& step : steps_) bytes += static_cast<int64_t>(step.content.size()) * growth();
  return bytes;
}

int64_t Normalizer::memory_bytes() const {
  int64_t bytes = static_cast<int64_t>(steps_.capacity() * sizeof(Step));
  for (const Step& step : steps_) {
    if (step.form) bytes += step.form->memory_bytes();
    if (step.pattern) bytes += step.pattern->memory_bytes();
  }
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
