// The calls of a Python text with their arguments, as far as constants tell them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/config/python_tokens.h"

namespace headroom::doctor {

struct PythonArgument;

struct PythonValue {
  enum class Kind { unknown, none, boolean, number, string, name, list, mapping, call };
  Kind kind = Kind::unknown;
  std::string text;  // scalar as text ("True", "4", "q_proj"); dotted name; callee of a call; unknown: the source, cut
  std::vector<PythonValue> items;       // list and tuple
  std::vector<PythonArgument> entries;  // mapping with constant keys; arguments of a call
  int64_t line = 0;
  int64_t begin = 0, end = 0;  // bytes of the expression
  bool assumed = false;        // rests on a default of the script: of an option, a dataclass field or a parameter
};

// One without a name has an empty one; **{"a": 1} counts as a=1.
struct PythonArgument {
  std::string name;
  PythonValue value;
};

struct PythonCall {
  std::string callee;  // dotted as written; ".half" after another call; "def setup" for a function's head
  std::vector<PythonArgument> arguments;
  int64_t line = 0;
  int64_t begin = 0;  // byte of the callee
  int64_t end = 0;    // byte behind the closing bracket
};

struct PythonAssignment {
  std::string name;  // "micro_batch_size"; "os.environ[X]" for variables of the environment
  PythonValue value;
  bool top_level = false;
  int64_t line = 0;
};

struct PythonScript {
  std::vector<PythonCall> calls;  // in the order of their closing brackets
  std::vector<PythonAssignment> assignments;
  std::vector<std::string> imports;  // dotted names behind import and from
};

// Evaluates numbers, strings, + - * / // % **, lists, dicts, names that are assigned once, above, and defaults: of
// parameters by name, of argparse's options and dataclass fields behind a name such as args or config. Throws
// Error(format) as tokenize_python does; any other text gives a script, hostile nesting included (64 levels).
PythonScript read_python_calls(std::string_view text, const std::string& source);

}  // namespace headroom::doctor
