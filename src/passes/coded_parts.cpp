#include "passes/coded_parts.h"

namespace headroom {
namespace {

struct CodedPart {
  std::string_view name;
  std::string CodedParts::*form;
};
constexpr CodedPart kCodedParts[] = {{"embedding", &CodedParts::embedding}, {"head", &CodedParts::head}};

// "head" or "head:int8-g32".
bool add_coded_part(std::string_view word, CodedParts& parts) {
  const size_t colon = word.find(':');
  for (const CodedPart& part : kCodedParts) {
    std::string& form = parts.*part.form;
    if (word.substr(0, colon) != part.name || !form.empty()) continue;
    form = colon == std::string_view::npos ? parts.layers : std::string(word.substr(colon + 1));
    return !form.empty();
  }
  return false;
}

}  // namespace

std::optional<CodedParts> coded_parts(std::string_view setting) {
  CodedParts parts;
  size_t plus = setting.find('+');
  parts.layers = setting.substr(0, plus);
  while (plus != std::string_view::npos) {
    const size_t begin = plus + 1;
    plus = setting.find('+', begin);
    if (!add_coded_part(setting.substr(begin, plus == std::string_view::npos ? plus : plus - begin), parts))
      return std::nullopt;
  }
  return parts;
}

std::string coded_setting(const CodedParts& parts) {
  std::string text = parts.layers;
  for (const CodedPart& part : kCodedParts) {
    const std::string& form = parts.*part.form;
    if (form.empty()) continue;
    text += '+';
    text += part.name;
    if (form != parts.layers) text += ':' + form;
  }
  return text;
}

}  // namespace headroom
