#include "formats/document.h"

#include <algorithm>

namespace headroom {
namespace {

bool holds_mapping(const DocumentNode& node) {
  return std::any_of(node.items.begin(), node.items.end(), [](const DocumentNode& item) {
    return item.kind == DocumentNode::Kind::mapping || holds_mapping(item);
  });
}

// The leaves of a value at `leaf`'s position.
void add_leaves(const DocumentLeaf& leaf, std::vector<DocumentLeaf>& leaves) {
  const DocumentNode& node = *leaf.value;
  if (node.kind == DocumentNode::Kind::mapping && !node.entries.empty()) {
    for (const DocumentEntry& entry : node.entries)
      add_leaves({leaf.path.empty() ? entry.key : leaf.path + "." + entry.key, entry.key, entry.line, &entry.value},
                 leaves);
  } else if (node.kind == DocumentNode::Kind::sequence && holds_mapping(node)) {
    for (const DocumentNode& item : node.items) add_leaves({leaf.path + "[]", leaf.key, item.line, &item}, leaves);
  } else {
    leaves.push_back(leaf);
  }
}

}  // namespace

const DocumentNode* DocumentNode::find(std::string_view key) const {
  for (size_t i = entries.size(); i > 0; --i)
    if (entries[i - 1].key == key) return &entries[i - 1].value;
  return nullptr;
}

std::vector<DocumentLeaf> document_leaves(const DocumentNode& root) {
  std::vector<DocumentLeaf> leaves;
  if (root.kind == DocumentNode::Kind::null) return leaves;
  if (root.kind == DocumentNode::Kind::mapping && root.entries.empty()) return leaves;
  add_leaves({"", "", root.line, &root}, leaves);
  return leaves;
}

}  // namespace headroom
