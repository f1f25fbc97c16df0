// The calls of a Python text, with the arguments that are constant.
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
  std::string text;  // scalar as text ("True", "4", "q_proj"); dotted name; callee of a call; for an unknown value the
                     // source, cut
  std::vector<PythonValue> items;       // list and tuple
  std::vector<PythonArgument> entries;  // mapping with constant keys; arguments of a call
  int64_t line = 0;
  int64_t begin = 0, end = 0;  // byte range of the expression
  bool assumed = false;        // relies on a default in the script: of an option, a dataclass field or a parameter
};

// An argument without a keyword has an empty name; **{"a": 1} counts as a=1.
struct PythonArgument {
  std::string name;
  PythonValue value;
};

struct PythonCall {
  std::string callee;  // dotted, as written; ".half" for a method of another call's result; "def setup" for a function
                       // definition
  std::vector<PythonArgument> arguments;
  int64_t line = 0;
  int64_t begin = 0;  // byte where the callee starts
  int64_t end = 0;    // byte after the closing bracket
};

struct PythonAssignment {
  std::string name;  // "micro_batch_size"; "os.environ[X]" for an environment variable
  PythonValue value;
  bool top_level = false;
  int64_t line = 0;
};

struct PythonScript {
  std::vector<PythonCall> calls;  // in the order of their closing brackets
  std::vector<PythonAssignment> assignments;
  std::vector<std::string> imports;  // dotted names after import and from
};

// Evaluates numbers, strings, + - * / // % **, lists, dicts, names assigned exactly once and above the use, and
// defaults: of parameters, and of argparse options and dataclass fields read through a name such as args or config.
// Throws the errors of tokenize_python; any other text gives a script, hostile nesting included (64 levels).
PythonScript read_python_calls(std::string_view text, const std::string& source);

}  // namespace headroom::doctor
