// What the runtime asks of a device: an arena for each tier of memory, prepared kernels, streams with events, copies
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

// Work queues. Calls on one stream run in order; across streams only events order them. Stream 0 always exists.
using StreamId = int32_t;
using EventId = int32_t;

// Kernels queued by one call (Device::capture).
using CaptureId = int32_t;

// A kernel prepared by a device for concrete types; holds no addresses.
class DeviceKernel {
 public:
  virtual ~DeviceKernel() = default;
  // Whether launches with the same operands may be captured: they do the same each time, but for one difference, trip 0
  // or a later one.
  virtual bool replays() const { return false; }
  // The name of its implementation ("cudnn", "mma" ...); empty where the device does not tell.
  virtual std::string_view implementation() const { return {}; }
};

// Of a device whose memory is not the host's; zeros of others.
struct DeviceMemory {
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;  // for anyone
  // Held by this process beside its arena: context, modules, libraries. Nothing where the driver does not tell it from
  // what other processes hold.
  std::optional<int64_t> outside_arena_bytes = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  // What the user should know of it, as that a library is missing, or has refused a call so far, and slower kernels
  // serve; empty when there is nothing.
  virtual std::string remark() const { return {}; }

  // Throws Error(does_not_fit) when an arena of these bytes cannot be had in a tier now, saying who holds the memory
  // where the device tells; says nothing where only the reservation itself can know. Room on disk is taken at once, of
  // the first call with bytes.
  virtual void require_room(Tier tier, int64_t bytes) {}
  // Reserves the arena of a tier, all pages present (the host's pinned where copies need it), a file on disk in full:
  // it cannot fail later. Only copies reach the disk's, whose addresses no memory backs. Called at most once for each
  // tier, the device's the last, kernels being prepared and streams created. Throws Error(run) when memory is short,
  // and what require_room throws.
  virtual std::byte* reserve_arena(Tier tier, int64_t bytes) = 0;
  virtual DeviceMemory memory() { return {}; }
  // False when this process cannot read the bytes of the device's arena through their addresses (null device, GPUs).
  virtual bool host_visible() const = 0;
  // Memory through which the host reads and writes an arena it does not see, page-locked where copies need it; empty
  // where every arena is seen.
  virtual std::span<std::byte> host_window() { return {}; }

  // Creates whatever the kernel needs (library primitives). Throws InternalError when no implementation accepts.
  virtual std::unique_ptr<DeviceKernel> prepare(const KernelSpec& spec) = 0;

  // Queues a kernel. `call` need not outlive the launch.
  virtual void launch(const DeviceKernel& kernel, const KernelCall& call, StreamId stream) = 0;

  // Keeps what `queue` launches on stream 0, without running it, for replay() to queue by one call (on a GPU a CUDA
  // graph). Its kernels replay, and `queue` calls launch() alone. Nothing where the device captures nothing, or no
  // more: who calls then launches each kernel. Called behind the arenas, before the first launch; takes host and device
  // memory.
  virtual std::optional<CaptureId> capture(const std::function<void()>& queue) { return {}; }
  virtual void replay(CaptureId capture) {}

  // Queues a copy between host memory and the arenas, in any direction. What fails in it is thrown by the wait.
  virtual void copy(std::byte* to, const std::byte* from, int64_t bytes, StreamId stream) = 0;

  // Streams and events are created before the arenas, so that what they take is known by then; recording and waiting
  // take no memory. A stream is for copies between the device and the tier `below`, of a disk that require_room has
  // given its file; stream 0, which is there already, copies to all tiers.
  virtual StreamId create_stream(Tier below) = 0;
  virtual EventId create_event() = 0;
  // The event marks the end of what is queued on the stream now. It may be recorded again: who waits then waits for the
  // newer mark, who waited before keeps the older one.
  virtual void record(EventId event, StreamId stream) = 0;
  // What is queued on the stream from now on runs after what the event marks.
  virtual void wait(StreamId stream, EventId event) = 0;
  // Returns when everything queued on the stream is done.
  virtual void synchronize(StreamId stream) = 0;
};

// The CPU: kernels of ops/, synchronous. One stream's order is every stream's order.
std::unique_ptr<Device> make_cpu_device(const DeviceFacts& facts);

// The same with a disk below its memory: an arena of Tier::disk is a nameless file in `directory`, and streams but the
// first are threads that copy between it and memory.
std::unique_ptr<Device> make_cpu_device_with_disk(const DeviceFacts& facts, const std::filesystem::path& directory);

// Bound of the host's memory that a disk below the device of these facts takes: buffers and threads of its copies.
int64_t disk_process_bytes(const DeviceFacts& facts);

// Executes without arithmetic or memory: checks that every operand and scratch lies inside one arena, and that every
// input still holds the bytes its last producer wrote (no other tensor was written over them since).
std::unique_ptr<Device> make_null_device(const DeviceFacts& facts);

// What --device names: the CPU, a device with memory of its own, or null, which plans and checks without arithmetic.
enum class DeviceKind : uint8_t { cpu, accelerator, null };
// `device` is "cpu", "null", or an accelerator's name (device/devices.h), alone or with its number: "cuda:1". Throws
// Error(usage) for other devices and for a bad number; so do all functions below that take such a name.
DeviceKind device_kind(std::string_view device);
// An accelerator by name and number, "cuda-0", for names of files; empty for other devices.
std::string accelerator_label(std::string_view device);
// Facts of a device of this machine, with a team of `threads` where it is the CPU. Throws as open_device.
DeviceFacts facts_of_device(std::string_view device, int threads);
// An accelerator's memory now, this process having no arena there: free_bytes are less by the context that asking
// makes, which outside_arena_bytes is, as far as the driver tells. Throws as open_device.
DeviceMemory memory_of_device(std::string_view device);
// `disk`: the directory for what plans keep on disk; empty: there is none. Throws Error(usage) where this build or this
// machine has no such device.
std::unique_ptr<Device> open_device(std::string_view device, const DeviceFacts& facts,
                                    const std::filesystem::path& disk = {});

// Most that the device of these facts takes of the host's memory as its host_window(), and of its own for captures.
int64_t window_bytes(const DeviceFacts& facts);
int64_t graph_bytes(const DeviceFacts& facts);
// "AVX-512 with bf16": what the device of these facts can do, for users.
std::string describe_capabilities(const DeviceFacts& facts);

// This machine's facts (instruction set as oneDNN will see it) with a team of `threads`.
DeviceFacts cpu_facts(int threads);

}  // namespace headroom
