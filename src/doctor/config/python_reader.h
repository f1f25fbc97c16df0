// Reads Python scripts and notebooks: the arguments of calls that affect memory.
#pragma once

#include <string>

#include "doctor/config/part.h"

namespace headroom::doctor {

// Throws Error(format) with file and line when the text is malformed or has no call that doctor knows.
Parts read_python(const std::string& name, const std::string& text);
// The code cells of a Jupyter notebook, in order. Line numbers are those of the notebook's file.
Parts read_notebook(const std::string& name, const std::string& text);

}  // namespace headroom::doctor
