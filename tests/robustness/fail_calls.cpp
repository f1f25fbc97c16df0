// Preloaded with LD_PRELOAD, makes a call of the program fail: the Nth allocation, the Nth call that may do I/O, or the
// Nth call that needs disk space and all such calls after it. Calls are counted from the start of main() to its end.
//
// Environment:
//   HEADROOM_FAIL_KIND heap|io|disk
//   HEADROOM_FAIL_AT N: from 1; 0 means none, only count
//   HEADROOM_FAIL_STACK HASH: not call N, but the first one from there on whose call stack has this hash
//   HEADROOM_FAIL_REPORT FILE: "COUNT FUNCTION ERRNO PATH" is written there at the end or at the failure
//   HEADROOM_FAIL_STACKS FILE: the hashes of the call stacks of all counted calls are written there, 8 bytes each
//
// A failing allocation returns null with ENOMEM (new then throws std::bad_alloc). A failing call returns what its
// manual says, with ENOSPC if it writes, EACCES if it opens, EIO otherwise.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

#include "call_stack.h"

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

enum class Kind { none, heap, io, disk };

constexpr long kMostStacks = 1 << 20;

struct State {
  Kind kind = Kind::none;
  long at = 0;
  uint64_t stack = 0;
  std::atomic<long> count = 0;
  std::atomic<bool> failed = false;
  uint64_t* stacks = nullptr;  // of the first kMostStacks calls
  std::atomic<bool> counting = false;
  char report[512] = {};
};
State state;

void write_report(long count, const char* function, int code, const char* path) {
  if (state.report[0] == 0) return;
  char text[1024];
  const int size = snprintf(text, sizeof text, "%ld %s %d %s\n", count, function, code, path);
  const long file = syscall(SYS_openat, AT_FDCWD, state.report, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return;
  syscall(SYS_write, file, text, size);
  syscall(SYS_close, file);
}

// Whether calls of this kind, failing with this code, are counted.
bool counts(Kind kind, int code) {
  return state.counting && (state.kind == kind || (state.kind == Kind::disk && kind == Kind::io && code == ENOSPC));
}

// Whether this call must fail; reports it.
bool fails(Kind kind, const char* function, int code, const char* path) {
  if (!counts(kind, code)) return false;
  const long count = ++state.count;
  const bool due = state.at > 0 && count >= state.at, failed = state.failed;
  const uint64_t stack = state.stacks || (due && !failed && state.stack) ? call_stack_hash() : 0;
  if (state.stacks && count <= kMostStacks) state.stacks[count - 1] = stack;
  if (!due || (failed && state.kind != Kind::disk) || (!failed && stack != state.stack)) return false;
  if (!state.failed.exchange(true)) write_report(count, function, code, path);
  errno = code;
  return true;
}

bool fails_on(int descriptor, const char* function, int code) {
  if (!counts(Kind::io, code)) return false;
  char link[64], path[512] = {};
  if (state.at > 0 && state.count + 1 >= state.at) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    if (syscall(SYS_readlink, link, path, sizeof path - 1) < 0) path[0] = 0;
  }
  return fails(Kind::io, function, code, path);
}

template <class Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Maps the file, so that threads write to it without a lock; null if that fails.
uint64_t* map_stacks(const char* path) {
  constexpr size_t kBytes = kMostStacks * sizeof(uint64_t);
  const int file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file < 0 || syscall(SYS_ftruncate, file, kBytes) != 0) return nullptr;
  const long at = syscall(SYS_mmap, nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  syscall(SYS_close, file);
  return at < 0 ? nullptr : reinterpret_cast<uint64_t*>(at);
}

int (*program)(int, char**, char**);

int counted_main(int argc, char** argv, char** environment) {
  const char* kind = getenv("HEADROOM_FAIL_KIND");
  const char* at = getenv("HEADROOM_FAIL_AT");
  const char* report = getenv("HEADROOM_FAIL_REPORT");
  const char* stacks = getenv("HEADROOM_FAIL_STACKS");
  if (kind) state.kind = strcmp(kind, "heap") == 0 ? Kind::heap : strcmp(kind, "disk") == 0 ? Kind::disk : Kind::io;
  if (at) state.at = atol(at);
  if (report) snprintf(state.report, sizeof state.report, "%s", report);
  const char* stack = getenv("HEADROOM_FAIL_STACK");
  if (stack) state.stack = strtoull(stack, nullptr, 16);
  if (stacks) state.stacks = map_stacks(stacks);
  state.counting = true;
  const int code = program(argc, argv, environment);
  state.counting = false;
  if (state.at == 0) write_report(state.count, "-", 0, "");
  return code;
}

}  // namespace

#define NEXT(name) static auto* const real = next(&name, #name)

extern "C" {

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*rtld)(), void* stack_end) {
  using Start = int(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
  program = main;
  auto* const start = reinterpret_cast<Start*>(dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(counted_main, argc, argv, init, fini, rtld, stack_end);
}

void* malloc(size_t bytes) noexcept { return fails(Kind::heap, "malloc", ENOMEM, "") ? nullptr : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) noexcept {
  return fails(Kind::heap, "calloc", ENOMEM, "") ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) noexcept {
  return fails(Kind::heap, "realloc", ENOMEM, "") ? nullptr : __libc_realloc(old, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return fails(Kind::heap, "aligned_alloc", ENOMEM, "") ? nullptr : __libc_memalign(alignment, bytes);
}
void* memalign(size_t alignment, size_t bytes) noexcept {
  return fails(Kind::heap, "memalign", ENOMEM, "") ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** into, size_t alignment, size_t bytes) noexcept {
  if (fails(Kind::heap, "posix_memalign", ENOMEM, "")) return ENOMEM;
  *into = __libc_memalign(alignment, bytes);
  return *into ? 0 : ENOMEM;
}
void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  if (file >= 0 ? fails_on(file, "mmap", ENOMEM) : fails(Kind::heap, "mmap", ENOMEM, "")) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(arguments, int) : 0;
  va_end(arguments);
  if (fails(Kind::io, "open", EACCES, path)) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(arguments, int) : 0;
  va_end(arguments);
  if (fails(Kind::io, "open", EACCES, path)) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int openat(int directory, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(arguments, int) : 0;
  va_end(arguments);
  if (fails(Kind::io, "openat", EACCES, path)) return -1;
  return static_cast<int>(syscall(SYS_openat, directory, path, flags, mode));
}
FILE* fopen(const char* path, const char* mode) {
  NEXT(fopen);
  return fails(Kind::io, "fopen", EACCES, path) ? nullptr : real(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  NEXT(fopen64);
  return fails(Kind::io, "fopen", EACCES, path) ? nullptr : real(path, mode);
}
DIR* opendir(const char* path) {
  NEXT(opendir);
  return fails(Kind::io, "opendir", EACCES, path) ? nullptr : real(path);
}
DIR* fdopendir(int file) {
  NEXT(fdopendir);
  return fails_on(file, "fdopendir", EIO) ? nullptr : real(file);
}
dirent* readdir(DIR* directory) {
  NEXT(readdir);
  return fails_on(dirfd(directory), "readdir", EIO) ? nullptr : real(directory);
}

ssize_t read(int file, void* into, size_t bytes) {
  return fails_on(file, "read", EIO) ? -1 : syscall(SYS_read, file, into, bytes);
}
ssize_t pread(int file, void* into, size_t bytes, off_t offset) {
  return fails_on(file, "pread", EIO) ? -1 : syscall(SYS_pread64, file, into, bytes, offset);
}
ssize_t pread64(int file, void* into, size_t bytes, off64_t offset) {
  return fails_on(file, "pread", EIO) ? -1 : syscall(SYS_pread64, file, into, bytes, offset);
}
ssize_t write(int file, const void* from, size_t bytes) {
  return fails_on(file, "write", ENOSPC) ? -1 : syscall(SYS_write, file, from, bytes);
}
ssize_t pwrite(int file, const void* from, size_t bytes, off_t offset) {
  return fails_on(file, "pwrite", ENOSPC) ? -1 : syscall(SYS_pwrite64, file, from, bytes, offset);
}
ssize_t pwrite64(int file, const void* from, size_t bytes, off64_t offset) {
  return fails_on(file, "pwrite", ENOSPC) ? -1 : syscall(SYS_pwrite64, file, from, bytes, offset);
}
ssize_t writev(int file, const iovec* parts, int count) {
  return fails_on(file, "writev", ENOSPC) ? -1 : syscall(SYS_writev, file, parts, count);
}
int fsync(int file) { return fails_on(file, "fsync", EIO) ? -1 : static_cast<int>(syscall(SYS_fsync, file)); }
int fdatasync(int file) {
  return fails_on(file, "fdatasync", EIO) ? -1 : static_cast<int>(syscall(SYS_fdatasync, file));
}
int ftruncate(int file, off_t bytes) noexcept {
  return fails_on(file, "ftruncate", EIO) ? -1 : static_cast<int>(syscall(SYS_ftruncate, file, bytes));
}
int fallocate(int file, int mode, off_t offset, off_t bytes) {
  return fails_on(file, "fallocate", ENOSPC) ? -1 : static_cast<int>(syscall(SYS_fallocate, file, mode, offset, bytes));
}
int close(int file) {
  const bool failed = fails_on(file, "close", EIO);
  const int code = static_cast<int>(syscall(SYS_close, file));
  if (failed) errno = EIO;
  return failed ? -1 : code;
}
int flock(int file, int operation) noexcept {
  return fails_on(file, "flock", ENOLCK) ? -1 : static_cast<int>(syscall(SYS_flock, file, operation));
}

int rename(const char* from, const char* to) noexcept {
  return fails(Kind::io, "rename", EIO, to) ? -1 : static_cast<int>(syscall(SYS_rename, from, to));
}
int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) noexcept {
  if (fails(Kind::io, "renameat2", EIO, to)) return -1;
  return static_cast<int>(syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
}
int mkdir(const char* path, mode_t mode) noexcept {
  return fails(Kind::io, "mkdir", ENOSPC, path) ? -1 : static_cast<int>(syscall(SYS_mkdir, path, mode));
}
int unlink(const char* path) noexcept {
  return fails(Kind::io, "unlink", EIO, path) ? -1 : static_cast<int>(syscall(SYS_unlink, path));
}
int unlinkat(int directory, const char* path, int flags) noexcept {
  return fails(Kind::io, "unlinkat", EIO, path) ? -1 : static_cast<int>(syscall(SYS_unlinkat, directory, path, flags));
}
int remove(const char* path) noexcept {
  NEXT(remove);
  return fails(Kind::io, "remove", EIO, path) ? -1 : real(path);
}
int stat(const char* path, struct stat* into) noexcept {
  return fails(Kind::io, "stat", EACCES, path) ? -1 : fstatat(AT_FDCWD, path, into, 0);
}
int lstat(const char* path, struct stat* into) noexcept {
  return fails(Kind::io, "lstat", EACCES, path) ? -1 : fstatat(AT_FDCWD, path, into, AT_SYMLINK_NOFOLLOW);
}
int fstat(int file, struct stat* into) noexcept {
  return fails_on(file, "fstat", EIO) ? -1 : fstatat(file, "", into, AT_EMPTY_PATH);
}
int fstat64(int file, struct stat64* into) noexcept {
  return fails_on(file, "fstat", EIO) ? -1 : fstatat64(file, "", into, AT_EMPTY_PATH);
}
}
