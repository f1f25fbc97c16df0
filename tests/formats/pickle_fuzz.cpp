// Any bytes are refused with an Error or give a document that can be traversed, with memory linear in the bytes.
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/pickle_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headroom;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  looks_like_pickle(bytes);
  try {
    const PickleDocument document = read_pickle(bytes, "fuzz");
    if (document.container_count() > size) abort();
    std::vector<char> seen(document.container_count(), 0);
    std::vector<PickleValue> waiting{document.root()};
    while (!waiting.empty()) {
      const PickleValue value = waiting.back();
      waiting.pop_back();
      if (!value.is_container()) {
        if (document.text(value).size() > 2 * size) abort();
        document.integer(value), document.real(value), document.boolean(value);
        continue;
      }
      char& visited = seen.at(document.container_number(value));
      if (visited != 0) continue;
      visited = 1;
      size_t count = 0;
      for (auto cursor = document.members(value); !cursor.done(); cursor.next(), ++count) {
        waiting.push_back(cursor.value());
        waiting.push_back(cursor.key());
      }
      if (count != document.size(value) || count > size) abort();
    }
  } catch (const Error&) {
  }
  return 0;
}
