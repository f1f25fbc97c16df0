// Snapshots read from a pickle, executing nothing of it.
#pragma once

#include <string>
#include <string_view>

#include "doctor/snapshot/snapshot.h"
#include "formats/pickle_reader.h"

namespace headroom::doctor {

// Reads torch.cuda.memory._dump_snapshot's file, a pickled torch.cuda.memory._snapshot(), or a pickled list of segments
// (torch.cuda.memory_snapshot()), of any pickle protocol. `source` names it in errors. `bytes` is not needed after.
//
// Throws Error(format) naming the byte when the pickle is malformed or wants to call something
// (formats/pickle_reader.h), or naming the place ("device_traces[0][17]: size") when it is not a snapshot. Time and
// memory are linear in the bytes whatever they say. Pure; thread-safe.
Snapshot read_snapshot(std::string_view bytes, const std::string& source);

}  // namespace headroom::doctor
