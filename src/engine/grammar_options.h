// The requested format of a text of `generate`.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

// At most one of them may be set; grammar_source() checks this.
struct GrammarOptions {
  std::string json_schema;  // its text, or a file
  bool json_object = false;
  std::optional<std::string> regex;
  std::vector<std::string> choices;
  std::filesystem::path grammar;  // a file of EBNF
};

}  // namespace headroom
