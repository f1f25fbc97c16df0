// Command lines and the scripts that hold them: launchers, wrappers, containers, and the options of the program inside.
#pragma once

#include <string>
#include <vector>

#include "doctor/config/part.h"
#include "formats/document_command.h"

namespace headroom::doctor {

// Reads one command; adds what it says to `parts` (nothing when it starts no program that doctor knows). `image` is the
// container's, empty when there is none.
void read_command(const std::vector<CommandWord>& words, const std::string& name, const std::string& image,
                  Parts& parts);

// A script (with #SBATCH lines) or a single command line. Throws Error(format) with file and line when it holds no
// command of a system that doctor reads.
Parts read_command_text(const std::string& name, const std::string& text);

}  // namespace headroom::doctor
