// Ctrl-C, SIGTERM and SIGUSR1 for a run that saves, or a server that drains, before it ends.
#pragma once

#include <atomic>

#include "train/run_events.h"

namespace headroom {

// Installs the handlers and returns what they set: the first SIGINT or SIGTERM asks for a save and the end, a second
// one, a second or more later, ends at once (timeout and batch systems send the same signal to the process and to its
// group); SIGUSR1 asks for a checkpoint. `text`, a literal, is printed at the first one.
RunControl& install_signal_handlers(
    const char* text = "\nstopping after this step, then saving (again to stop at once)\n");

// SIGHUP sets what this returns.
std::atomic<bool>& install_reload_handler();

}  // namespace headroom
