// What the text of `generate` is asked to be.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

// At most one of them; grammar_source() says so.
struct GrammarOptions {
  std::string json_schema;  // its text, or a file
  bool json_object = false;
  std::optional<std::string> regex;
  std::vector<std::string> choices;
  std::filesystem::path grammar;  // a file of EBNF
};

}  // namespace headroom
