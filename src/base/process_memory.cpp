#include "base/process_memory.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

namespace headroom {

int64_t peak_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

int64_t resident_bytes() {
  char text[128] = {};
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t bytes = ::read(file, text, sizeof text - 1);
  ::close(file);
  const char* resident = bytes > 0 ? std::strchr(text, ' ') : nullptr;
  int64_t pages = 0;
  if (resident) std::from_chars(resident + 1, text + bytes, pages);
  return pages * ::sysconf(_SC_PAGESIZE);
}

}  // namespace headroom
