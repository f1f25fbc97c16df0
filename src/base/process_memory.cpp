#include "base/process_memory.h"

#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

namespace headroom {
namespace {

// Reads the beginning of a file into `text`, without a heap call. Returns the bytes read, 0 if there is no such file.
template <size_t kBytes>
size_t read_start(const char* path, char (&text)[kBytes]) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t bytes = ::read(file, text, kBytes - 1);
  ::close(file);
  return bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

// Whether a process traces this one ("TracerPid:" of its status); true if unknown.
bool traced() {
  char text[2048] = {};
  read_start("/proc/self/status", text);
  const char* const tracer = std::strstr(text, "TracerPid:\t");
  return !tracer || tracer[11] != '0';
}

// Drops the pages of the segment that holds `code`: code is mapped from its file and never written.
int drop_code_of(dl_phdr_info* object, size_t, void* code) {
  const auto at = reinterpret_cast<uintptr_t>(code);
  const auto within = [&](const ElfW(Phdr) & segment) {
    const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    return segment.p_type == PT_LOAD && at >= begin && at < begin + segment.p_memsz;
  };
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (!within(segment)) continue;
    if ((segment.p_flags & PF_W) != 0) return 1;
    const uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) / page * page;
    const uintptr_t end = object->dlpi_addr + segment.p_vaddr + segment.p_filesz;
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    return 1;
  }
  return 0;
}

}  // namespace

void release_what_is_behind() {
  ::malloc_trim(0);
  if (!traced()) ::dl_iterate_phdr(drop_code_of, reinterpret_cast<void*>(&release_what_is_behind));
}

int64_t peak_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

int64_t resident_bytes() {
  char text[128] = {};
  const size_t bytes = read_start("/proc/self/statm", text);
  const char* resident = std::strchr(text, ' ');
  int64_t pages = 0;
  if (resident) std::from_chars(resident + 1, text + bytes, pages);
  return pages * ::sysconf(_SC_PAGESIZE);
}

}  // namespace headroom
