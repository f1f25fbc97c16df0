#include "base/process_memory.h"

#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <string_view>

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

// Whether the dynamic linker writes to an object's code.
bool writes_code(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + segment.p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry)
      if (entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL) != 0))
        return true;
  }
  return false;
}

// Whether an address lies in one of an object's segments.
bool holds(const dl_phdr_info& object, uintptr_t address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    const uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address < begin + segment.p_memsz) return true;
  }
  return false;
}

// Drops the pages of an object's code and constants, which are mapped from its file and never written.
void drop_constant_pages(const dl_phdr_info& object) {
  const uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const uintptr_t begin = (object.dlpi_addr + segment.p_vaddr) / page * page;
    const uintptr_t end = object.dlpi_addr + segment.p_vaddr + segment.p_filesz;
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
}

// Of the program, whose object comes first, and its libraries; inside another program of headroom's object alone. The
// kernel's object has no file.
int drop_pages_of(dl_phdr_info* object, size_t, void* is_program) {
  const bool own = holds(*object, reinterpret_cast<uintptr_t>(&drop_pages_of));
  const std::string_view name = object->dlpi_name ? object->dlpi_name : "";
  bool& program = *static_cast<bool*>(is_program);
  if (own && name.empty()) program = true;
  if ((own || program) && !name.starts_with("linux-") && !writes_code(*object)) drop_constant_pages(*object);
  return 0;
}

}  // namespace

void release_what_is_behind() {
  ::malloc_trim(0);
  bool is_program = false;
  if (!traced()) ::dl_iterate_phdr(drop_pages_of, &is_program);
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
