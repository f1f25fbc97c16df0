// Ctrl-C, SIGTERM and SIGUSR1 for a run that saves, or a server that drains, before it ends; SIGHUP for a reload.
#pragma once

#include <atomic>

#include "train/run_events.h"

namespace headroom {

// Installs the handlers and returns what they set. The first SIGINT or SIGTERM asks for a save and the end; another one
// more than a second later ends the process at once (timeout and batch systems send the same signal to the process and
// to its group). SIGUSR1 asks for a checkpoint. `text`, a literal, is printed at the first SIGINT or SIGTERM.
RunControl& install_signal_handlers(
    const char* text = "\nstopping after this step, then saving; a second signal stops at once\n");

// SIGHUP sets the returned flag, which the caller clears.
std::atomic<bool>& install_reload_handler();

}  // namespace headroom
