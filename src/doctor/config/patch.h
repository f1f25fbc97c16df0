// Edits the user's own text. Only the requested values change; comments, order and quoting stay.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/config/config_reader.h"

namespace headroom::doctor {

// One change. `key` is the key of an Origin: the dotted path in YAML and JSON ("training.optimizer"), the option on a
// command line ("--optim"), "Call.argument" in Python ("TrainingArguments.optim"). `value` is the text to write; it is
// quoted where the language needs it. An empty value with `remove` deletes the key.
struct Edit {
  std::string key;
  std::string value;
  int64_t line = 0;     // line of the key, if several have the same name; 0: the last one
  bool remove = false;  // command lines and YAML scalars only
};

struct Patch {
  std::string text;  // the whole edited text
  std::string diff;  // unified; empty when nothing changed
};

// Applies the edits to a text of that kind. A missing key is added: in YAML and JSON under its parent (created if
// needed), on a command line after the last option, in Python as the call's last argument. The result is read back and
// must have every edit and all other keys unchanged. Throws Error(usage) when a key cannot be edited (a notebook, a
// value given through an alias or a variable, a missing call), Error(format) when the text is malformed.
Patch patch_config(const std::string& name, SourceKind kind, const std::string& text, const std::vector<Edit>& edits);

// The change as diff -u prints it, with three lines of context and the name in the header ("--- a/name"). Empty for
// equal texts.
std::string unified_diff(const std::string& name, const std::string& before, const std::string& after);

}  // namespace headroom::doctor
