#include "formats/document.h"

#include <algorithm>
#include <span>

#include "base/bytes.h"
#include "base/error.h"
#include "formats/file.h"

namespace headroom {
namespace {

bool holds_mapping(const DocumentNode& node) {
  return std::any_of(node.items.begin(), node.items.end(), [](const DocumentNode& item) {
    return item.kind == DocumentNode::Kind::mapping || holds_mapping(item);
  });
}

// Leaves of a value that stands at `leaf`'s place.
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

std::string read_text_file(const std::filesystem::path& path, int64_t limit_bytes) {
  const File file = File::open(path);
  if (file.size() > limit_bytes)
    throw Error(ErrorKind::format,
                fmt::format("{} has {}, more than the {} expected of such a file", path.string(),
                            format_bytes(file.size()), format_bytes(limit_bytes)),
                "check that the path names the right file");
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace headroom
