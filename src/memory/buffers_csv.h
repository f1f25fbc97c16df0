// Buffers and their offsets as CSV: id,lower,upper,size[,offset], upper exclusive.
#pragma once

#include <filesystem>
#include <ostream>
#include <span>
#include <string_view>
#include <vector>

#include "memory/buffer.h"

namespace headroom {

// Reads a problem. The first line names the columns, in any order: id, lower, upper, size, and optionally offset, which
// pins a buffer if its field is not empty. Whole numbers from 0 to 2^62; lower < upper; ids are unique. Throws
// Error(usage) if the file cannot be read, Error(format) naming file, line and value for anything else.
std::vector<Buffer> read_buffers_csv(const std::filesystem::path& path);

// The same from text; `name` stands for the file in messages.
std::vector<Buffer> parse_buffers_csv(std::string_view text, std::string_view name);

// Writes id,lower,upper,size and, if `assignment` is given, offset. Ends every line with '\n'.
void write_buffers_csv(std::ostream& out, std::span<const Buffer> buffers,
                       const OffsetAssignment* assignment = nullptr);

}  // namespace headroom
