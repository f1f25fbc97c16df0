// Arbitrary bytes as CSV: either a stated error, or a packing that the checker accepts.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "memory/checker.h"
#include "memory/lower_bound.h"
#include "memory/pack.h"
#include "memory/packing_csv.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  headroom::PackOptions options;
  options.alignment = 1 + data[0] % 80;
  options.capacity = data[1] < 128 ? 0 : int64_t{1} << (data[1] % 63);
  options.effort_iterations = 3;
  options.exact_nodes = 300;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  try {
    const auto buffers = headroom::parse_packing_csv(text, "fuzz");
    const headroom::Packing packing = headroom::pack(buffers, options);
    require(!headroom::find_violation(buffers, packing, options.alignment));
    require(packing.peak >= headroom::lower_bound(buffers, options.alignment));
    std::ostringstream out;
    headroom::write_packing_csv(out, buffers, &packing);
    const auto again = headroom::parse_packing_csv(out.str(), "again");
    require(again.size() == buffers.size());
    require(headroom::pack(again, options).offsets == packing.offsets);
  } catch (const headroom::Error&) {
  }
  return 0;
}
