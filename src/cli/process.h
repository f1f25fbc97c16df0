// What must be set before anything allocates.
#pragma once

namespace headroom {

// Bounds the allocator (one malloc arena, fixed thresholds), so that the process's memory outside the arena is the same
// in every run. Also ends cleanly when memory is exhausted, and ignores SIGXFSZ and SIGPIPE.
void prepare_process();

}  // namespace headroom
