// The content of an out-of-memory message of any program.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::doctor {

struct OtherProcess {
  int64_t pid = 0;
  std::optional<int64_t> bytes;
};

// A frame of the traceback around a message.
struct Frame {
  std::string file;
  int64_t line = 0;
  std::string function;
  std::string code;  // the source line printed below the frame; empty when there is none
};

// A figure as printed: "2.22 GiB" stands for every value within half of `resolution_bytes` of `bytes`.
struct Figure {
  std::string field;  // "requested", "capacity", ... : the name of a *_bytes field below
  std::string written;
  int64_t bytes = 0;
  int64_t resolution_bytes = 1;  // one unit of the last digit, at least 1
};

// One message. Figures are in bytes; a figure that the message neither states nor implies is absent.
struct Message {
  std::string text;     // cleaned of ANSI colours and of prefixes, wrapped lines joined; at most 4 KiB
  int64_t line = 0;     // of the log, from 1
  int64_t repeats = 1;  // this message and equal ones after it (other ranks, retries)
  std::optional<int> rank;
  std::string framework;  // a name of docs/doctor_messages.md: "pytorch-cuda", "linux-oom", ...
  std::string format;     // the generation or form of the message, for tests and --verbose
  std::optional<int64_t> requested_bytes;
  std::optional<int64_t> capacity_bytes;
  std::optional<int64_t> allocated_bytes;
  std::optional<int64_t> reserved_bytes;
  std::optional<int64_t> reserved_unallocated_bytes;
  std::optional<int64_t> free_bytes;
  std::optional<int64_t> process_bytes;
  std::optional<int64_t> process_limit_bytes;      // a per-process fraction or cap, if stated
  std::optional<int64_t> private_pool_bytes;       // part of allocated_bytes held by CUDA graphs' pools
  std::optional<int64_t> other_allocations_bytes;  // MPS: memory allocated on the device outside PyTorch's pool
  std::vector<OtherProcess> other_processes;
  std::vector<Figure> figures;  // one per figure that was read (computed ones are not included)
  std::optional<int> device_index;
  std::optional<int64_t> pid;     // of the process that was killed or that reports
  std::string phase = "unknown";  // load, forward, backward, optimizer_step, eval, checkpoint_save, ...
  std::string phase_evidence;     // the frame or words that show the phase
  std::vector<Frame> frames;      // at most 64, innermost last
  // Servers: what the message says about the KV cache.
  std::optional<int64_t> kv_tokens_wanted, kv_tokens_available;
  std::optional<int64_t> kv_bytes_wanted, kv_bytes_available;
  std::optional<double> gpu_memory_utilization;
  // Names of the rules: "fragmentation" (reserved but unallocated memory covers the request), "free_covers_request",
  // "requested_above_capacity", "outside_memory" (1 GiB or more is neither free nor PyTorch's), "other_processes",
  // "host_ram", "shared_memory", "single_allocation_limit", "no_numbers", "soft" (a warning: the program continued),
  // "disguised" (a library's error that usually means out of memory), "bogus_size".
  std::vector<std::string> hints;

  bool hinted(std::string_view hint) const {
    return std::any_of(hints.begin(), hints.end(), [&](const std::string& entry) { return entry == hint; });
  }
};

}  // namespace headroom::doctor
