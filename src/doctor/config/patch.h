// Edits of the user's own text: only the values asked for change; comments, order and quoting stay.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/config/config_reader.h"

namespace headroom::doctor {

// One change. `key` is an Origin's key: the dotted path in YAML and JSON ("training.optimizer"), the option on a
// command line ("--optim"), "Call.argument" in Python ("TrainingArguments.optim"). `value` is as it shall stand in the
// text; it is quoted where the language needs it. An empty value with `remove` takes the key out.
struct Edit {
  std::string key;
  std::string value;
  int64_t line = 0;     // of the key, where several have the same; 0: the last one
  bool remove = false;  // command lines and YAML scalars only
};

struct Patch {
  std::string text;  // the edited text, whole
  std::string diff;  // unified, empty when nothing changed
};

// Applies the edits to a text of that kind. A key that is absent is added: in YAML and JSON below its parent (made when
// absent), on a command line behind the last option, in Python as the call's last argument. The result is read again:
// it holds every edit and all other keys as before. Throws Error(usage) when a key cannot be edited (a notebook, a
// value given through an alias or a variable, a call that is not there), Error(format) when the text is malformed.
Patch patch_config(const std::string& name, SourceKind kind, const std::string& text, const std::vector<Edit>& edits);

// The change as diff -u shows it, three lines of context, with the name in front ("--- a/name"). Empty for equal texts.
std::string unified_diff(const std::string& name, const std::string& before, const std::string& after);

}  // namespace headroom::doctor
