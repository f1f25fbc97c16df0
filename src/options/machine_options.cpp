#include "options/machine_options.h"

#include "options/option_checks.h"

namespace headroom {

void check_options(const MachineOptions& o) { option_checks::at_least("threads", o.threads, 0); }

}  // namespace headroom
