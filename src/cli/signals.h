// Ctrl-C, SIGTERM and SIGUSR1 for a run that saves before it ends.
#pragma once

#include <atomic>

#include "train/run_events.h"

namespace headroom {

// Installs the handlers and returns what they set: the first SIGINT or SIGTERM asks for a save and the end, a second
// one, a second or more later, ends at once (timeout and batch systems send the same signal to the process and to its
// group); SIGUSR1 asks for a checkpoint.
RunControl& install_signal_handlers();

// SIGHUP sets what this returns.
std::atomic<bool>& install_reload_handler();

}  // namespace headroom
