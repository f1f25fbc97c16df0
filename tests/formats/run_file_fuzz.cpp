// Any run file gives flat entries with lines and unique keys, or an Error.
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "formats/run_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headroom;
  try {
    std::set<std::string> keys;
    for (const RunFileEntry& entry : parse_run_file({reinterpret_cast<const char*>(data), size}, "fuzz"))
      if (entry.line < 1 || entry.key.empty() || !keys.insert(entry.key).second ||
          (!entry.is_list && entry.values.size() != 1))
        abort();
  } catch (const Error&) {
  }
  return 0;
}
