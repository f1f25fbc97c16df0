// A YAML or JSON text as a tree, with the line and the bytes of every key and value: for readers that must account for
// each key and for writers that change one value and leave the rest of the text unchanged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

struct DocumentEntry;

// A value. Numbers and truth values stay text: the reader of the key decides what "no" or "1e-4" means.
struct DocumentNode {
  enum class Kind { null, scalar, sequence, mapping };
  Kind kind = Kind::null;
  std::string text;     // scalar: unescaped
  bool quoted = false;  // scalar: written in quotes, or as a block
  int64_t line = 0;     // of the value, from 1
  // Bytes of the value in the text. end is 0 if the value has no simple end (block collections and block scalars of
  // YAML), begin too if it came from an alias.
  int64_t begin = 0, end = 0;
  std::vector<DocumentEntry> entries;  // mapping, in the order of the text; a repeated key has several entries
  std::vector<DocumentNode> items;     // sequence

  // The last entry of that key, or null. Only for mappings; null for other kinds.
  const DocumentNode* find(std::string_view key) const;
};

struct DocumentEntry {
  std::string key;
  int64_t line = 0;   // of the key, from 1
  int64_t begin = 0;  // byte at which the key starts (its quote, when quoted)
  DocumentNode value;
};

// A value that contains no mapping, with its path: "train.max_norm", "datasets[].path" (elements of a sequence share
// one path). An empty mapping or sequence is also a leaf.
struct DocumentLeaf {
  std::string path;
  std::string key;  // last part of the path
  int64_t line = 0;
  const DocumentNode* value = nullptr;  // into the document; a sequence of scalars is one leaf
};

// Both throw Error(format) with file and line for malformed text, nesting deeper than 64 levels, more than 200000
// values or a text above 8 MiB. `source` names the text in errors. YAML: the first document (others are refused);
// aliases are followed, merge keys (<<) filled in; what anchors and aliases repeat counts as values and text too.
DocumentNode parse_yaml_document(std::string_view text, const std::string& source);
// JSON; comments (// and #) and a comma before a closing bracket are accepted, as by DeepSpeed's hjson.
DocumentNode parse_json_document(std::string_view text, const std::string& source);

// All leaves in the order of the text. `root` must outlive the result.
std::vector<DocumentLeaf> document_leaves(const DocumentNode& root);

}  // namespace headroom
