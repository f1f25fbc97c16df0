#include "doctor/config/patch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "doctor/config/patch_text.h"
#include "doctor/config/python_calls.h"
#include "formats/document.h"
#include "formats/document_command.h"

namespace headroom::doctor {
namespace {

std::string leaf_text(const DocumentLeaf& leaf) {
  std::string text = leaf.path + "=" + leaf.value->text;
  for (const DocumentNode& item : leaf.value->items) text += "," + item.text;
  return text;
}

// Checks that everything except the edited key reads as before.
void check_others(const std::string& name, const DocumentNode& before, const DocumentNode& after, const Edit& edit) {
  const auto others = [&](const DocumentNode& root) {
    std::vector<std::string> texts;
    for (const DocumentLeaf& leaf : document_leaves(root))
      if (leaf.path != edit.key && !leaf.path.starts_with(edit.key + ".") && !edit.key.starts_with(leaf.path + "."))
        texts.push_back(leaf_text(leaf));
    return texts;
  };
  if (others(before) != others(after))
    throw Error(ErrorKind::usage, fmt::format("{}: setting '{}' would change other keys too", name, edit.key),
                "change it by hand");
}

std::string patch_document(const std::string& name, const std::string& text, const Edit& edit, bool json) {
  const std::string result = json ? patch_json(name, text, edit) : patch_yaml(name, text, edit);
  const auto parse = json ? parse_json_document : parse_yaml_document;
  check_others(name, parse(text, name), parse(result, name), edit);
  return result;
}

}  // namespace

Patch patch_config(const std::string& name, SourceKind kind, const std::string& text, const std::vector<Edit>& edits) {
  std::string result = text;
  for (const Edit& edit : edits) {
    switch (kind) {
      case SourceKind::yaml:
      case SourceKind::json:
        result = patch_document(name, result, edit, kind == SourceKind::json);
        break;
      case SourceKind::python:
        result = patch_python(name, result, edit);
        read_python_calls(result, name);
        break;
      case SourceKind::command:
        result = patch_command(name, result, edit);
        parse_shell_commands(result, name);
        break;
      case SourceKind::notebook:
        throw Error(ErrorKind::usage, fmt::format("{}: notebooks are not edited", name), "change the cell by hand");
    }
  }
  return {result, unified_diff(name, text, result)};
}

}  // namespace headroom::doctor
