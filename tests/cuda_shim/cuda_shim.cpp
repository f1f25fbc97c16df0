#include "cuda_shim/cuda_shim.h"

#include <ucontext.h>

#include <algorithm>
#include <csetjmp>
#include <exception>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "base/error.h"

#if defined(__SANITIZE_ADDRESS__)
#define HR_SHIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HR_SHIM_ASAN 1
#endif
#endif
#ifdef HR_SHIM_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace headroom::cuda_shim {
namespace {

constexpr size_t kStackBytes = 128 << 10;
constexpr int kWarpSize = 32;
constexpr int64_t kFreeShared = 48 << 10;  // available without a request
constexpr size_t kSharedGuard = 256;       // bytes after a block's dynamic shared memory
constexpr std::byte kUnwritten{0xFF};      // NaN in every floating type

enum class State : uint8_t { ready, at_block_barrier, at_warp_barrier, done };

// A copy that a thread has started and not waited for.
struct AsyncCopy {
  void* to;
  const void* from;  // null: zeros
  size_t bytes;
  int group;
};

// A thread of the running block. Its stack is reused for threads of later blocks.
struct Fiber {
  std::unique_ptr<std::byte[]> stack{new std::byte[kStackBytes]};
  ucontext_t context{};
  Dim3 index{0, 0, 0};
  State state = State::done;
  int line = 0;                       // of the barrier at which it waits
  alignas(16) std::byte slot[2][16];  // used in turn: one is written while the other may still be read
  int exchanges = 0;
  std::vector<AsyncCopy> copies;
  int groups = 0;  // committed groups of copies
#ifdef HR_SHIM_ASAN
  void* fake_stack = nullptr;
#else
  jmp_buf jump;
#endif
  bool started = false;
};

// The state of the running grid. The shim runs one grid at a time.
struct Machine {
  std::vector<std::unique_ptr<Fiber>> fibers;
  ucontext_t scheduler{};
  Fiber* current = nullptr;
  Dim3 grid, block, block_at;
  std::vector<std::byte> shared;  // with the guard after it
  void (*body)(const void*) = nullptr;
  const void* body_context = nullptr;
  std::exception_ptr fault;
  Order order = Order::forward;
  int64_t threads = 0;
  bool demands_loading = false;
  std::optional<Captured> captured;       // the current capture
  std::map<const void*, int64_t> loaded;  // code and the maximum shared memory requested
#ifdef HR_SHIM_ASAN
  void* fake_stack = nullptr;
  const void* stack_bottom = nullptr;
  size_t stack_size = 0;
#else
  jmp_buf jump;
#endif
};

Machine& machine() {
  static Machine instance;
  return instance;
}

// Switches contexts: with swapcontext if the address sanitizer must follow the stacks, else with jumps, which need no
// system call.
void to_scheduler() {
  Machine& m = machine();
  Fiber& fiber = *m.current;
#ifdef HR_SHIM_ASAN
  __sanitizer_start_switch_fiber(&fiber.fake_stack, m.stack_bottom, m.stack_size);
  swapcontext(&fiber.context, &m.scheduler);
  __sanitizer_finish_switch_fiber(fiber.fake_stack, &m.stack_bottom, &m.stack_size);
#else
  if (_setjmp(fiber.jump) == 0) _longjmp(m.jump, 1);
#endif
}

// A fiber runs one thread after another: it is set up once and then resumed.
void fiber_main() {
  Machine& m = machine();
#ifdef HR_SHIM_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &m.stack_bottom, &m.stack_size);
#endif
  while (true) {
    try {
      m.body(m.body_context);
      HR_CHECK(m.current->copies.empty(), "a thread ends with {} copies under way", m.current->copies.size());
    } catch (...) {
      if (!m.fault) m.fault = std::current_exception();
    }
    m.current->state = State::done;
    to_scheduler();
  }
}

void resume(Fiber& fiber) {
  Machine& m = machine();
  m.current = &fiber;
#ifdef HR_SHIM_ASAN
  __sanitizer_start_switch_fiber(&m.fake_stack, fiber.stack.get(), kStackBytes);
  swapcontext(&m.scheduler, &fiber.context);
  __sanitizer_finish_switch_fiber(m.fake_stack, nullptr, nullptr);
#else
  if (_setjmp(m.jump) == 0) {
    if (fiber.started) _longjmp(fiber.jump, 1);
    fiber.started = true;
    setcontext(&fiber.context);
  }
#endif
  m.current = nullptr;
}

Fiber& fiber_at(size_t index) {
  Machine& m = machine();
  while (m.fibers.size() <= index) {
    auto fiber = std::make_unique<Fiber>();
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack.get();
    fiber->context.uc_stack.ss_size = kStackBytes;
    makecontext(&fiber->context, fiber_main, 0);
    m.fibers.push_back(std::move(fiber));
  }
  return *m.fibers[index];
}

// The order in which `count` items are visited.
std::vector<size_t> visiting_order(size_t count, uint64_t salt) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  const Order wanted = machine().order;
  if (wanted == Order::backward) std::reverse(order.begin(), order.end());
  if (wanted != Order::shuffled) return order;
  uint64_t state = salt * 0x9E3779B97F4A7C15u + 1;
  for (size_t i = count; i > 1; --i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::swap(order[i - 1], order[(state >> 33) % i]);
  }
  return order;
}

// Releases the threads in [begin, end) that wait at a barrier of this kind, if no other thread of theirs can run.
bool release(size_t begin, size_t end, State waiting) {
  Machine& m = machine();
  int line = 0;
  bool any = false;
  for (size_t i = begin; i < end; ++i) {
    const Fiber& fiber = *m.fibers[i];
    if (fiber.state == State::done) continue;
    if (fiber.state != waiting) return false;
    HR_CHECK(!any || fiber.line == line, "threads of a block wait at the barriers of lines {} and {}", line,
             fiber.line);
    any = true;
    line = fiber.line;
  }
  if (!any) return false;
  for (size_t i = begin; i < end; ++i) {
    HR_CHECK(m.fibers[i]->state != State::done, "thread {} has ended and never reaches the barrier of line {}", i,
             line);
    m.fibers[i]->state = State::ready;
  }
  return true;
}

// Runs the threads of a warp until each has ended or waits for the block; returns whether any progressed.
bool run_warp(size_t first, size_t threads, const std::vector<size_t>& lanes) {
  Machine& m = machine();
  const size_t end = std::min(threads, first + kWarpSize);
  bool moved = false;
  while (true) {
    for (size_t lane : lanes) {
      if (first + lane >= end) continue;
      Fiber& fiber = *m.fibers[first + lane];
      if (fiber.state != State::ready) continue;
      resume(fiber);
      moved = true;
    }
    if (m.fault || !release(first, end, State::at_warp_barrier)) return moved;
  }
}

bool all_done(size_t threads) {
  for (size_t i = 0; i < threads; ++i)
    if (machine().fibers[i]->state != State::done) return false;
  return true;
}

void run_block(size_t threads) {
  Machine& m = machine();
  const std::vector<size_t> warps = visiting_order((threads + kWarpSize - 1) / kWarpSize, m.block_at.x + 77);
  const std::vector<size_t> lanes = visiting_order(kWarpSize, m.block_at.x + 99);
  for (size_t i = 0; i < threads; ++i) {
    Fiber& fiber = fiber_at(i);
    fiber.index = {static_cast<unsigned>(i), 0, 0};
    fiber.state = State::ready;
    fiber.exchanges = 0;
    fiber.copies.clear();
    fiber.groups = 0;
  }
  while (true) {
    bool moved = false;
    for (size_t warp : warps) {
      moved |= run_warp(warp * kWarpSize, threads, lanes);
      if (m.fault) return;
    }
    if (all_done(threads)) return;
    moved |= release(0, threads, State::at_block_barrier);
    HR_CHECK(moved, "the threads of a block wait for each other at different barriers");
  }
}

void prepare_shared(size_t bytes) {
  Machine& m = machine();
  m.shared.assign(bytes + kSharedGuard, kUnwritten);
}

void check_shared_guard() {
  const std::vector<std::byte>& shared = machine().shared;
  HR_CHECK(std::all_of(shared.end() - kSharedGuard, shared.end(), [](std::byte b) { return b == kUnwritten; }),
           "a block wrote past its {} bytes of shared memory", shared.size() - kSharedGuard);
}

bool in_shared(const void* at, size_t bytes) {
  const std::vector<std::byte>& shared = machine().shared;
  const auto begin = reinterpret_cast<uintptr_t>(shared.data()), first = reinterpret_cast<uintptr_t>(at);
  return first >= begin && first + bytes <= begin + shared.size() - kSharedGuard;
}

void abandon_fibers() { machine().fibers.clear(); }

void wait_at(State kind, int line) {
  Fiber& fiber = *machine().current;
  fiber.state = kind;
  fiber.line = line;
  to_scheduler();
}

}  // namespace

void set_order(Order order) { machine().order = order; }
const Dim3& thread_index() { return machine().current->index; }
const Dim3& block_index() { return machine().block_at; }
const Dim3& block_size() { return machine().block; }
const Dim3& grid_size() { return machine().grid; }
void* dynamic_shared() { return machine().shared.data(); }
int lane() { return static_cast<int>(thread_index().x % kWarpSize); }
int64_t threads_run() { return machine().threads; }

void block_barrier(int line) { wait_at(State::at_block_barrier, line); }
void warp_barrier(int line) { wait_at(State::at_warp_barrier, line); }

void exchange(const void* mine, void* theirs, size_t bytes, int from, unsigned mask, int line) {
  Machine& m = machine();
  HR_CHECK(mask == 0xffffffffu && m.block.x % kWarpSize == 0, "a collective of part of a warp");
  const int turn = m.current->exchanges++ % 2;
  std::memcpy(m.current->slot[turn], mine, bytes);
  const size_t first = m.current->index.x / kWarpSize * kWarpSize;
  warp_barrier(line);
  std::memcpy(theirs, m.fibers[first + static_cast<size_t>(from)]->slot[turn], bytes);
}

void begin_capture() {
  HR_CHECK(!machine().captured, "a capture begins inside another");
  machine().captured.emplace();
}
Captured end_capture() {
  HR_CHECK(machine().captured, "a capture ends that never began");
  Captured all = std::move(*machine().captured);
  machine().captured.reset();
  return all;
}
Captured* capture_under_way() { return machine().captured ? &*machine().captured : nullptr; }

int64_t most_shared = kLeastSharedBytes;

void load(const void* code, int64_t shared_bytes) {
  HR_CHECK(shared_bytes <= most_shared, "a block asks for {} bytes of shared memory", shared_bytes);
  int64_t& most = machine().loaded[code];
  most = std::max(most, shared_bytes);
}
void demand_loading(bool demand) {
  Machine& m = machine();
  if (m.demands_loading != demand) m.loaded.clear();
  m.demands_loading = demand;
}
int64_t loaded_kernels() { return static_cast<int64_t>(machine().loaded.size()); }
void check_loaded(const void* code, int64_t shared_bytes) {
  const Machine& m = machine();
  if (!m.demands_loading) return;
  const auto at = m.loaded.find(code);
  HR_CHECK(at != m.loaded.end(), "a kernel is launched that was not loaded");
  HR_CHECK(shared_bytes <= std::max(kFreeShared, at->second),
           "a block asks for {} bytes of shared memory, {} are granted", shared_bytes, at->second);
}

void check_aligned(const void* at, size_t bytes) {
  HR_CHECK(reinterpret_cast<uintptr_t>(at) % bytes == 0,
           "an access of {} bytes at an address that is not aligned to them", bytes);
}
void check_shared(const void* at, size_t bytes) {
  check_aligned(at, bytes);
  HR_CHECK(in_shared(at, bytes), "{} bytes outside the block's {} of shared memory", bytes,
           machine().shared.size() - kSharedGuard);
}
void check_device_store(const void* at, size_t bytes) {
  check_aligned(at, bytes);
  HR_CHECK(!in_shared(at, bytes), "a store for device memory goes to shared memory");
}

void begin_copy(void* shared, const void* global, size_t bytes, bool there) {
  check_shared(shared, bytes);
  check_aligned(global, bytes);
  Fiber& fiber = *machine().current;
  std::memset(shared, static_cast<int>(kUnwritten), bytes);
  fiber.copies.push_back({shared, there ? global : nullptr, bytes, fiber.groups});
}
void end_copy_group() { ++machine().current->groups; }
void await_copies(int under_way) {
  Fiber& fiber = *machine().current;
  const auto done = [&](const AsyncCopy& copy) { return copy.group < fiber.groups - under_way; };
  for (const AsyncCopy& copy : fiber.copies) {
    if (!done(copy)) continue;
    if (copy.from)
      std::memcpy(copy.to, copy.from, copy.bytes);
    else
      std::memset(copy.to, 0, copy.bytes);
  }
  std::erase_if(fiber.copies, done);
}

void run_grid_of(Dim3 grid, unsigned block, size_t shared_bytes, void (*body)(const void*), const void* context) {
  Machine& m = machine();
  HR_CHECK(!m.current && block >= 1 && block <= 1024, "a launch inside a kernel, or a block of {} threads", block);
  m.grid = grid;
  m.block = {block, 1, 1};
  m.body = body;
  m.body_context = context;
  m.fault = nullptr;
  const size_t blocks = size_t{grid.x} * grid.y * grid.z;
  try {
    for (size_t at : visiting_order(blocks, 5)) {
      m.block_at = {static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
                    static_cast<unsigned>(at / grid.x / grid.y)};
      prepare_shared(shared_bytes);
      run_block(block);
      m.threads += block;
      if (m.fault) std::rethrow_exception(m.fault);
      check_shared_guard();
    }
  } catch (...) {
    m.current = nullptr;
    abandon_fibers();
    throw;
  }
}

}  // namespace headroom::cuda_shim
