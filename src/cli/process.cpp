#include "cli/process.h"

#include <malloc.h>
#include <signal.h>

#include "cli/memory_exhaustion.h"

namespace headroom {

void prepare_process() {
  end_cleanly_without_memory();
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_THRESHOLD, 256 * 1024);
  ::mallopt(M_TRIM_THRESHOLD, 256 * 1024);
  // A write beyond a file-size limit or to a closed pipe is an error to report, not the end of the process.
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
}

}  // namespace headroom
