// Any text as YAML, JSON or shell gives a tree whose positions are inside the text, or an Error.
#include <cstdlib>

#include "base/error.h"
#include "formats/document.h"
#include "formats/document_command.h"

namespace {

void check(const headroom::DocumentNode& node, size_t size) {
  if (node.begin < 0 || node.end < 0 || static_cast<size_t>(node.end) > size || static_cast<size_t>(node.begin) > size)
    abort();
  if (node.end > 0 && node.end < node.begin) abort();
  for (const headroom::DocumentNode& item : node.items) check(item, size);
  for (const headroom::DocumentEntry& entry : node.entries) check(entry.value, size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headroom;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool json : {false, true}) try {
      const DocumentNode root = json ? parse_json_document(text, "fuzz") : parse_yaml_document(text, "fuzz");
      check(root, size);
      for (const DocumentLeaf& leaf : document_leaves(root))
        if (!leaf.value) abort();
    } catch (const Error&) {
    }
  try {
    for (const ShellCommand& command : parse_shell_commands(text, "fuzz"))
      for (const CommandWord& word : command.words)
        if (word.begin > word.end || static_cast<size_t>(word.end) > size || word.line < 1) abort();
  } catch (const Error&) {
  }
  return 0;
}
