// The setting of quantize-weights: which parts of a model are codes, and in which form each
// (passes/quantize_weights.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// The form of each part; empty: it stays as it is. "int8" are the layers alone, "int8+embedding+head" all in one form,
// "int4+head:int8-g32" the head in another.
struct CodedParts {
  std::string layers, embedding, head;

  bool beyond_layers() const { return !embedding.empty() || !head.empty(); }
  bool operator==(const CodedParts&) const = default;
};

// Parses a setting; the names of the forms are not checked. Nothing for another part, or one named twice.
std::optional<CodedParts> coded_parts(std::string_view setting);
std::string coded_setting(const CodedParts& parts);

}  // namespace headroom
