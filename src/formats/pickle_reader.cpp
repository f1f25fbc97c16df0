#include "formats/pickle_reader.h"

#include <limits>

#include "base/error.h"
#include "formats/pickle_machine.h"

namespace headroom {

bool looks_like_pickle(std::string_view prefix) {
  if (prefix.size() < 3) return false;
  const auto second = static_cast<uint8_t>(prefix[1]);
  if (static_cast<uint8_t>(prefix[0]) == 0x80)
    return second >= 2 && second <= 5 && std::string_view("]}()\x95").find(prefix[2]) != std::string_view::npos;
  const bool numbered = prefix.size() > 3 && prefix[3] >= '0' && prefix[3] <= '9';
  if (prefix[0] == '(' && (second == 'd' || second == 'l')) return prefix[2] == 'p' && numbered;
  return (prefix[0] == '}' || prefix[0] == ']') && second == 'q' && static_cast<uint8_t>(prefix[2]) <= 1;
}

PickleDocument read_pickle(std::string_view bytes, const std::string& source) {
  if (bytes.size() >= std::numeric_limits<uint32_t>::max())
    throw Error(ErrorKind::format, fmt::format("{}: {} bytes, more than the 4 GiB that are read", source, bytes.size()),
                "record less: torch.cuda.memory._record_memory_history(max_entries=100000, stacks=\"python\")");
  return PickleMachine(bytes, source).run();
}

}  // namespace headroom
