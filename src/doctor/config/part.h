// What one source contributes: settings of one system each, with the precedence that systems give them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "doctor/config/key_table.h"

namespace headroom::doctor {

// A later rank overrides an earlier one that sets the same field.
enum class Rank { accelerate, deepspeed, adapter, file, script, launcher, command };

struct Part {
  const Dialect* dialect = nullptr;
  Rank rank = Rank::file;
  std::vector<Setting> settings;
  std::string source;
  std::string evidence;  // why this system: "key zero_optimization", "command `vllm serve`"
};

// The content of a source.
struct Parts {
  std::vector<Part> parts;
  std::vector<std::pair<Origin, std::string>> references;                           // local files that it names
  std::vector<std::pair<Origin, std::pair<std::string, std::string>>> environment;  // NAME, value
  std::vector<KeyNote> irrelevant;  // keys that belong to no dialect, with the reason
  std::vector<std::string> notes;
  std::map<std::string, std::string> facts;  // for the draft ("litgpt.command")
};

}  // namespace headroom::doctor
