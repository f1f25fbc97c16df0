// Python scripts and notebooks: the arguments of the calls that bear on memory.
#pragma once

#include <string>

#include "doctor/config/part.h"

namespace headroom::doctor {

// Throws Error(format) with file and line when the text is malformed or makes no call that doctor knows.
Parts read_python(const std::string& name, const std::string& text);
// The code cells of a Jupyter notebook, one after the other; lines are those of the notebook's own text.
Parts read_notebook(const std::string& name, const std::string& text);

}  // namespace headroom::doctor
