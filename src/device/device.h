// The runtime's interface to a device: an arena for each tier of memory, prepared kernels, streams with events, copies
// between tiers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ops/kernel.h"

namespace headroom {

// Work queues. Calls on one stream run in order; only events order calls on different streams. Stream 0 always exists.
using StreamId = int32_t;
using EventId = int32_t;

// Kernels queued by one call (Device::capture).
using CaptureId = int32_t;

// A kernel that a device prepared for concrete types; it holds no addresses.
class DeviceKernel {
 public:
  virtual ~DeviceKernel() = default;
  // Whether launches with the same operands may be captured: they always do the same, except that trip 0 may differ
  // from later trips.
  virtual bool replays() const { return false; }
  // The name of its implementation ("cudnn", "mma" ...); empty when the device does not tell.
  virtual std::string_view implementation() const { return {}; }
};

// The memory of a device that does not share the host's; zeros for other devices.
struct DeviceMemory {
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;  // for any process
  // Held by this process outside its arena: context, modules, libraries. nullopt when the driver does not report it per
  // process.
  std::optional<int64_t> outside_arena_bytes = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  // A note for the user, for example that a library is missing or refused a call, so that slower kernels are used;
  // empty if there is none.
  virtual std::string remark() const { return {}; }
  // Called by a thread that goes on with a device which another thread opened and now leaves to it.
  virtual void enter_thread() {}

  // Throws Error(does_not_fit) when a tier has no room now for an arena of these bytes, with the processes that hold
  // the memory if the device knows. Does nothing if only reserving can tell. Disk space is reserved by the first call
  // with bytes.
  virtual void require_room(Tier tier, int64_t bytes) {}
  // Reserves the arena of a tier with all pages present (the host's pinned if copies need that, a file on disk in
  // full), so that it cannot fail later. Only copies may access the disk's arena: no memory backs its addresses. Called
  // at most once per tier, the device's last, after kernels are prepared and streams created. Throws Error(run) when
  // memory is short, and what require_room throws.
  virtual std::byte* reserve_arena(Tier tier, int64_t bytes) = 0;
  virtual DeviceMemory memory() { return {}; }
  // False when this process cannot read the device's arena through its addresses (null device, GPUs).
  virtual bool host_visible() const = 0;
  // Memory through which the host reads and writes an arena that it cannot access, page-locked if copies need that;
  // empty when every arena is accessible.
  virtual std::span<std::byte> host_window() { return {}; }

  // Creates what the kernel needs (library primitives). Throws InternalError when no implementation accepts the spec.
  virtual std::unique_ptr<DeviceKernel> prepare(const KernelSpec& spec) = 0;

  // Queues a kernel. `call` need not outlive the launch.
  virtual void launch(const DeviceKernel& kernel, const KernelCall& call, StreamId stream) = 0;

  // Records what `queue` launches on stream 0 without running it, so that replay() can queue it with one call (on a GPU
  // a CUDA graph). All its kernels must replay, and `queue` may only call launch(). nullopt when the device does not
  // capture, or no longer does; the caller then launches each kernel. Called after the arenas are reserved and before
  // the first launch; takes host and device memory.
  virtual std::optional<CaptureId> capture(const std::function<void()>& queue) { return {}; }
  virtual void replay(CaptureId capture) {}

  // Queues a copy between host memory and arenas, in any direction. A failure is thrown by the wait.
  virtual void copy(std::byte* to, const std::byte* from, int64_t bytes, StreamId stream) = 0;

  // Streams and events are created before the arenas, so that their memory is known by then; recording and waiting take
  // no memory. A stream is for copies between the device and the tier `below`; for the disk, require_room must have
  // created its file. Stream 0 always exists and copies to all tiers.
  virtual StreamId create_stream(Tier below) = 0;
  virtual EventId create_event() = 0;
  // The event marks the end of the work now queued on the stream. It may be recorded again: later waits then wait for
  // the newer mark, earlier ones still for the older.
  virtual void record(EventId event, StreamId stream) = 0;
  // Work queued on the stream from now on runs after the work that the event marks.
  virtual void wait(StreamId stream, EventId event) = 0;
  // Returns when all work queued on the stream is done.
  virtual void synchronize(StreamId stream) = 0;
};

// The CPU, with the kernels of ops/, synchronous: all streams together run in the order of the calls.
std::unique_ptr<Device> make_cpu_device(const DeviceFacts& facts);

// The same with a disk as the tier below: the arena of Tier::disk is a nameless file in `directory`, and streams other
// than the first are threads that copy between it and memory.
std::unique_ptr<Device> make_cpu_device_with_disk(const DeviceFacts& facts, const std::filesystem::path& directory);

// Upper bound of the host memory that a disk below such a device takes: buffers and threads of its copies.
int64_t disk_process_bytes(const DeviceFacts& facts);

// Executes without arithmetic and memory: checks that every operand and scratch is inside one arena, and that every
// input still holds the bytes that its last producer wrote (no other tensor has been written over them).
std::unique_ptr<Device> make_null_device(const DeviceFacts& facts);

// The kinds that --device can name: the CPU, a device with its own memory, or null, which plans and checks without
// arithmetic.
enum class DeviceKind : uint8_t { cpu, accelerator, null };
// `device` is "cpu", "null", or an accelerator's name (device/devices.h), alone or with its number: "cuda:1". Throws
// Error(usage) for other devices and for a bad number; so do all functions below that take such a name.
DeviceKind device_kind(std::string_view device);
// An accelerator's name and number for file names, "cuda-0"; empty for other devices.
std::string accelerator_label(std::string_view device);
// Facts of a device of this machine; for the CPU, with a team of `threads`. Throws as open_device.
DeviceFacts facts_of_device(std::string_view device, int threads);
// An accelerator's memory while this process has no arena on it. free_bytes does not include the context that this call
// creates, whose size is outside_arena_bytes if the driver reports it. Throws as open_device.
DeviceMemory memory_of_device(std::string_view device);
// `disk`: the directory for tensors that the plan keeps on disk; empty: none. Throws Error(usage) when this build or
// this machine does not have the device.
std::unique_ptr<Device> open_device(std::string_view device, const DeviceFacts& facts,
                                    const std::filesystem::path& disk = {});

// Upper bound of the host memory that such a device takes for its host_window(), and of its own memory for captures.
int64_t window_bytes(const DeviceFacts& facts);
int64_t graph_bytes(const DeviceFacts& facts);
// The capabilities in these facts, for users: "AVX-512 with bf16".
std::string describe_capabilities(const DeviceFacts& facts);

// This machine's facts, with a team of `threads` (instruction set as oneDNN will detect it).
DeviceFacts cpu_facts(int threads);

}  // namespace headroom
