// Defaults that a Python script gives its options: argparse options and dataclass fields.
#pragma once

#include <map>
#include <string>

#include "doctor/config/python_calls.h"

namespace headroom::doctor {

// A number, string, truth value or None.
bool is_constant(const PythonValue& value);

class ScriptDefaults {
 public:
  bool empty() const { return values_.empty(); }
  // A dataclass field: `name: type = 4` or `name: type = field(default=4)`.
  void note_field(const std::string& name, const PythonValue& value);
  // parser.add_argument("--lora-r", default=8), or a flag.
  void note_argument(const PythonCall& call);
  // The default of the option read as "args.lora_r". Null when the name does not hold options, or when the option has
  // no constant default or two different ones.
  const PythonValue* of(const std::string& dotted) const;

 private:
  void note(const std::string& name, const PythonValue& value);

  std::map<std::string, PythonValue> values_;
};

}  // namespace headroom::doctor
