#include "engine/assign_file.h"

#include "base/error.h"
#include "memory/buffers_csv.h"
#include "memory/lower_bound.h"

namespace headroom {

AssignedFile assign_file(const std::filesystem::path& file, int64_t capacity) {
  if (capacity <= 0) throw Error(ErrorKind::usage, "--pack needs a capacity in bytes", "give --capacity N");
  AssignedFile assigned;
  assigned.buffers = read_buffers_csv(file);
  AssignmentOptions options;
  options.alignment = 1;
  options.capacity = capacity;
  options.exact_nodes = 4'000'000;
  assigned.assignment = assign_offsets(assigned.buffers, options);
  assigned.largest_live_sum = lower_bound(assigned.buffers, 1);
  return assigned;
}

void write_assignment(std::ostream& out, const AssignedFile& assigned) {
  write_buffers_csv(out, assigned.buffers, &assigned.assignment);
}

}  // namespace headroom
