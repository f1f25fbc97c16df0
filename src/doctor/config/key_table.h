// Tables of what each key of a system means for memory, and the function that applies them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/config/draft.h"

namespace headroom::doctor {

struct KeyRule;
// Puts a value into the draft. Returns why the value cannot be used, or empty on success.
using Apply = std::string_view (*)(Draft&, const Setting&, const KeyRule&);

// A key that affects memory. The path is in snake case; "optimizer.*" matches every key below it.
struct KeyRule {
  std::string_view key;
  Apply apply;
  std::string_view field;  // name of a Job field or of a fact
};

// Keys that take no memory, separated by spaces, with the reason. "wandb_*" matches every key with that prefix.
struct Irrelevant {
  std::string_view why;
  std::string_view keys;
};

// An old or misspelt name; if `since` is empty, an alternative name that is still right.
struct Renamed {
  std::string_view old_key, key;
  std::string_view since;  // "transformers 4.41; the old name went in 4.46"
};

struct Dialect;
using DialectOf = const Dialect& (*)();

struct Dialect {
  System system = System::unknown;
  std::string_view name;
  std::span<const KeyRule> rules;
  std::span<const Irrelevant> irrelevant;
  std::span<const Renamed> renamed;
  std::span<const DialectOf> bases;  // searched after this dialect's own tables
  // Normalises a path ("fsdp_config.fsdp_x" -> "fsdp_config.x"); may be null.
  std::string (*rewrite)(std::string_view path) = nullptr;
  void (*finish)(Draft&) = nullptr;  // combines the facts of several keys; called once per job
};

// Applies one setting. It ends up in exactly one of the job's lists understood, irrelevant, unknown, unreadable.
void apply_setting(const Dialect& dialect, const Setting& setting, Draft& draft);
// The rule for a key, with renames and bases searched; null if there is none.
const KeyRule* find_rule(const Dialect& dialect, std::string_view key);
// Whether the key is in any table of the dialect or its bases, under any name.
bool knows_key(const Dialect& dialect, std::string_view key);
// Names of all rules and of irrelevant keys without a wildcard, for suggestions.
std::vector<std::string> known_keys(const Dialect& dialect);
// Calls the finish functions of the dialect and its bases, once each, bases first.
void finish_dialects(std::span<const Dialect* const> dialects, Draft& draft);

}  // namespace headroom::doctor
