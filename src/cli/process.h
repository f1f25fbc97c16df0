// What must be settled before anything allocates.
#pragma once

namespace headroom {

// Bounds the allocator (one malloc arena, fixed thresholds), so that what the process holds outside its memory arena
// is the same in every run.
void prepare_process(char** argv);

}  // namespace headroom
