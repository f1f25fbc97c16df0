// One self-contained HTML page about a run: no network, no script.
#pragma once

#include <string>

#include "report/run_files.h"

namespace headroom::report {

// The page. Pure; at most a few hundred KiB however long the run and large the model.
std::string page(const Run& run);

// Its parts, in this order; empty if the run left nothing for one.
std::string head_section(const Run& run);
std::string timeline_section(const Run& run);
std::string peak_section(const Run& run);
std::string curves_section(const Run& run);
std::string lengths_section(const Run& run);
std::string techniques_section(const Run& run);
std::string budget_section(const Run& run);
std::string process_section(const Run& run);

}  // namespace headroom::report
