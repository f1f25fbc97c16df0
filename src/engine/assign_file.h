// Offsets for the buffers of a file, without a model.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <vector>

#include "memory/offset_assignment.h"

namespace headroom {

struct AssignedFile {
  std::vector<Buffer> buffers;
  OffsetAssignment assignment;   // the best one found
  int64_t largest_live_sum = 0;  // bytes: a lower bound for any assignment
};

// Assigns offsets to the buffers of a CSV (id,lower,upper,size) without alignment, until they end within `capacity`.
// Throws Error(usage) without a capacity, Error(format | run) as read_buffers_csv().
AssignedFile assign_file(const std::filesystem::path& file, int64_t capacity);

// Writes the buffers with their offsets as a CSV (docs/offset_assignment.md).
void write_assignment(std::ostream& out, const AssignedFile& assigned);

}  // namespace headroom
