// Arbitrary bytes as CSV: an error, or offsets that the checker accepts.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "memory/buffers_csv.h"
#include "memory/checker.h"
#include "memory/lower_bound.h"
#include "memory/offset_assignment.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  headroom::AssignmentOptions options;
  options.alignment = 1 + data[0] % 80;
  options.capacity = data[1] < 128 ? 0 : int64_t{1} << (data[1] % 63);
  options.effort_iterations = 3;
  options.exact_nodes = 300;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  try {
    const auto buffers = headroom::parse_buffers_csv(text, "fuzz");
    const headroom::OffsetAssignment assignment = headroom::assign_offsets(buffers, options);
    require(!headroom::find_violation(buffers, assignment, options.alignment));
    require(assignment.peak >= headroom::lower_bound(buffers, options.alignment));
    std::ostringstream out;
    headroom::write_buffers_csv(out, buffers, &assignment);
    const auto again = headroom::parse_buffers_csv(out.str(), "again");
    require(again.size() == buffers.size());
    require(headroom::assign_offsets(again, options).offsets == assignment.offsets);
  } catch (const headroom::Error&) {
  }
  return 0;
}
