// What happens where an allocation fails and nobody can tell the caller.
#pragma once

namespace headroom {

// From now on, memory that runs out ends the program with exit code 1 and a message in every case: where the exception
// meets code that cannot throw, and inside oneDNN, which uses what it allocates unchecked. Other libraries are told, as
// the C library would tell them: they may do without. What lies under a final name is whole at every moment, so nothing
// is left to undo. Call once, before anything allocates.
void end_cleanly_without_memory();

}  // namespace headroom
