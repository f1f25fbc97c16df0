#include "base/error.h"
#include "comm/process_group.h"

namespace headroom {

bool has_mpi() { return false; }

std::unique_ptr<ProcessGroup> make_mpi_process_group(int64_t) {
  throw Error(ErrorKind::usage, "this build has no MPI",
              "install libopenmpi-dev and configure with -DHEADROOM_MPI=ON, or run one process");
}

}  // namespace headroom
