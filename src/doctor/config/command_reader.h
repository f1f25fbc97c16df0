// Reads command lines and shell scripts: launchers, wrappers, containers, and the options of the program that they
// start.
#pragma once

#include <string>
#include <vector>

#include "doctor/config/part.h"
#include "formats/document_command.h"

namespace headroom::doctor {

// Reads one command and adds its settings to `parts`; adds nothing if it starts no program that doctor knows. `image`
// is the container's, empty outside a container.
void read_command(const std::vector<CommandWord>& words, const std::string& name, const std::string& image,
                  Parts& parts);

// Reads a script (with #SBATCH lines) or a single command line. Throws Error(format) with file and line when it has no
// command of a system that doctor reads.
Parts read_command_text(const std::string& name, const std::string& text);

}  // namespace headroom::doctor
