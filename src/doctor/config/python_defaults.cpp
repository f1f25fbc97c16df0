#include "doctor/config/python_defaults.h"

#include <string_view>

#include "doctor/config/setting.h"

namespace headroom::doctor {
namespace {

using Kind = PythonValue::Kind;
constexpr size_t kMaxOptions = 10'000;

// Names of objects that hold a script's options.
bool holds_options(std::string_view name) {
  for (const std::string_view word : {"args", "opt", "opts", "options", "FLAGS", "flags", "script_args", "model_args",
                                      "data_args", "training_args", "train_args", "hparams", "config", "cfg"})
    if (name == word) return true;
  return false;
}

}  // namespace

bool is_constant(const PythonValue& value) {
  return value.kind == Kind::number || value.kind == Kind::string || value.kind == Kind::boolean ||
         value.kind == Kind::none;
}

void ScriptDefaults::note_field(const std::string& name, const PythonValue& value) {
  if (value.kind != Kind::call) return note(name, value);
  for (const PythonArgument& argument : value.entries)
    if (argument.name == "default" && value.text.ends_with("field")) note(name, argument.value);
}

void ScriptDefaults::note_argument(const PythonCall& call) {
  std::string name;
  PythonValue value;
  for (const PythonArgument& argument : call.arguments) {
    if (argument.name.empty() && argument.value.kind == Kind::string && argument.value.text.starts_with("--"))
      name = table_key(argument.value.text);
    if (argument.name == "dest") name = argument.value.text;
    if (argument.name == "action" && argument.value.text.starts_with("store_") && value.kind == Kind::unknown) {
      value = argument.value;
      value.kind = Kind::boolean;
      value.text = argument.value.text == "store_false" ? "True" : "False";
    }
    if (argument.name == "default") value = argument.value;
  }
  note(name, value);
}

void ScriptDefaults::note(const std::string& name, const PythonValue& value) {
  if (name.empty() || !is_constant(value) || values_.size() >= kMaxOptions || value.text.size() > 4096) return;
  const auto [known, added] = values_.emplace(name, value);
  known->second.assumed = true;
  if (!added && known->second.text != value.text) known->second.kind = Kind::unknown;
}

const PythonValue* ScriptDefaults::of(const std::string& dotted) const {
  const size_t dot = dotted.find('.');
  if (dot == std::string::npos || !holds_options(std::string_view(dotted).substr(0, dot))) return nullptr;
  const auto found = values_.find(dotted.substr(dot + 1));
  return found == values_.end() || found->second.kind == Kind::unknown ? nullptr : &found->second;
}

}  // namespace headroom::doctor
