// The content of a PyTorch memory snapshot: the final segments with their blocks, and the events before.
//
// Names and meanings of fields: torch.cuda.memory._snapshot (1.13 to 2.15), torch/csrc/cuda/memory_snapshot.cpp and
// c10/core/CachingDeviceAllocator.h of PyTorch. Sizes are in bytes. An event's size is the requested size; a block's
// size is what the allocator gave (rounded up to 512 bytes or more).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace headroom::doctor {

// A line of Python or C++ code. `file` is "??" or empty when PyTorch did not know it.
struct StackFrame {
  std::string file;
  std::string function;
  int64_t line = 0;
};

// Frames and stacks of a snapshot, each stored once. A stack lists its frames from the innermost to the outermost.
struct StackTable {
  static constexpr uint32_t kNone = 0;  // the empty stack: none was recorded, or the thread has no Python frames

  std::vector<StackFrame> frames;
  std::vector<std::vector<uint32_t>> stacks{{}};  // indexes into `frames`
};

enum class BlockState : uint8_t {
  allocated,     // active_allocated: a tensor's storage
  pending_free,  // active_pending_free, active_awaiting_free: freed, but another stream may still use it
  inactive,      // cached by the allocator
};

struct Block {
  int64_t address = 0;
  int64_t size = 0;
  int64_t requested_size = 0;  // 0 when inactive
  uint32_t stack = StackTable::kNone;
  BlockState state = BlockState::inactive;
};

// {0, 0} is the default pool; others belong to CUDA graphs or torch.cuda.MemPool.
using PoolId = std::pair<int64_t, int64_t>;

struct Segment {
  int64_t device = 0;
  int64_t address = 0;
  int64_t total_size = 0;
  int64_t allocated_size = 0;  // sum of the allocated blocks
  int64_t active_size = 0;     // allocated and pending blocks
  int64_t stream = 0;
  PoolId pool{0, 0};
  uint32_t stack = StackTable::kNone;
  bool large = true;
  bool expandable = false;
  std::vector<Block> blocks;  // by address, without gaps
};

enum class TraceAction : uint8_t {
  alloc,
  free_requested,
  free_completed,
  segment_alloc,
  segment_free,
  segment_map,
  segment_unmap,
  snapshot,
  oom,
  other,  // user_defined, annotate and events of later versions: no memory changes
};

struct TraceEvent {
  int64_t address = 0;  // for an oom event: the bytes that the device still reported free
  int64_t size = 0;
  int64_t time_us = 0;  // 0 before PyTorch 2.1
  uint32_t stack = StackTable::kNone;
  uint32_t stream = 0;  // index into Snapshot::streams
  uint32_t pool = 0;    // index into Snapshot::pools; 0 when the event does not tell
  TraceAction action = TraceAction::other;
};

// Ranges of record_function, such as "Optimizer.step#AdamW.step" and "ProfilerStep#3" (PyTorch 2.5 and later).
struct Annotation {
  std::string name;
  std::string stage;  // START or END
  int64_t device = 0;
  int64_t time_us = 0;
};

struct AllocatorSettings {
  std::string text;  // PYTORCH_CUDA_ALLOC_CONF
  std::optional<bool> expandable_segments;
  std::optional<int64_t> max_split_size;  // empty: no limit
  std::optional<double> garbage_collection_threshold;
};

struct Snapshot {
  std::string source;  // the file's name, for messages
  std::vector<Segment> segments;
  std::vector<std::vector<TraceEvent>> device_traces;  // per device, the oldest event first
  std::vector<Annotation> annotations;                 // in the order of the file
  AllocatorSettings settings;
  StackTable stacks;
  std::vector<int64_t> streams;
  std::vector<PoolId> pools{{0, 0}};
  int64_t pinned_host_bytes = 0;  // host_segments (PyTorch 2.12 and later)
  bool has_trace = false;         // there is at least one event
  bool has_frames = false;        // there is at least one stack
};

}  // namespace headroom::doctor
