// What happens where an allocation fails and nobody can tell the caller.
#pragma once

namespace headroom {

// From now on, memory that runs out ends the program with exit code 1 and a message in every case: where the exception
// meets code that cannot throw, and inside oneDNN, which uses what it allocates unchecked. Other libraries see the
// failure as the C library reports it: they may be able to continue. Files under their final names are complete at
// every moment, so nothing has to be undone. Call once, before anything allocates.
void end_cleanly_without_memory();

}  // namespace headroom
