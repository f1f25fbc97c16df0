#include "engine/pack_file.h"

#include "base/error.h"
#include "memory/buffers_csv.h"
#include "memory/lower_bound.h"

namespace headroom {

PackedFile pack_file(const std::filesystem::path& file, int64_t capacity) {
  if (capacity <= 0) throw Error(ErrorKind::usage, "--pack needs a capacity in bytes", "give --capacity N");
  PackedFile packed;
  packed.buffers = read_buffers_csv(file);
  AssignmentOptions options;
  options.alignment = 1;
  options.capacity = capacity;
  options.exact_nodes = 4'000'000;
  packed.assignment = assign_offsets(packed.buffers, options);
  packed.largest_live_sum = lower_bound(packed.buffers, 1);
  return packed;
}

}  // namespace headroom
