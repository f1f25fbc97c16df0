// Reads snapshots from a pickle without executing any of it.
#pragma once

#include <string>
#include <string_view>

#include "doctor/snapshot/snapshot.h"
#include "formats/pickle_reader.h"

namespace headroom::doctor {

// Reads the file of torch.cuda.memory._dump_snapshot, a pickled torch.cuda.memory._snapshot(), or a pickled list of
// segments (torch.cuda.memory_snapshot()), in any pickle protocol. `source` is the name for errors. `bytes` is not
// needed afterwards.
//
// Throws Error(format) with the byte's offset when the pickle is malformed or would call something
// (formats/pickle_reader.h), or with the path ("device_traces[0][17]: size") when it is not a snapshot. Time and memory
// are linear in the bytes, whatever their content. A pure function; thread-safe.
Snapshot read_snapshot(std::string_view bytes, const std::string& source);

}  // namespace headroom::doctor
