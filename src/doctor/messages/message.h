// What an out-of-memory message says, whatever wrote it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headroom::doctor {

struct OtherProcess {
  int64_t pid = 0;
  std::optional<int64_t> bytes;
};

// A frame of the traceback around a message, innermost last.
struct Frame {
  std::string file;
  int64_t line = 0;
  std::string function;
};

// One message. Figures are bytes; a figure that the message neither states nor implies is absent.
struct Message {
  std::string text;     // cleaned of ANSI colours and of prefixes, wrapped lines joined; at most 4 KiB
  int64_t line = 0;     // of the log, from 1
  int64_t repeats = 1;  // equal messages that followed (other ranks, retries)
  std::optional<int> rank;
  std::string framework;  // names of shared/cli.md's doctor record: "pytorch-cuda", "linux-oom", ...
  std::string format;     // which generation or shape of message, for tests and --verbose
  std::optional<int64_t> requested_bytes;
  std::optional<int64_t> capacity_bytes;
  std::optional<int64_t> allocated_bytes;
  std::optional<int64_t> reserved_bytes;
  std::optional<int64_t> reserved_unallocated_bytes;
  std::optional<int64_t> free_bytes;
  std::optional<int64_t> process_bytes;
  std::optional<int64_t> process_limit_bytes;  // a per-process fraction or cap, when stated
  std::vector<OtherProcess> other_processes;
  std::optional<int> device_index;
  std::string phase = "unknown";  // load, forward, backward, optimizer_step, eval, checkpoint_save, ...
  std::string phase_evidence;     // the frame or words that show the phase
  std::vector<Frame> frames;      // at most 64, innermost last
  // Servers: what the message says about the KV cache.
  std::optional<int64_t> kv_tokens_wanted, kv_tokens_available;
  std::optional<int64_t> kv_bytes_wanted, kv_bytes_available;
  std::optional<double> gpu_memory_utilization;
  std::vector<std::string> hints;  // rule names such as "fragmentation", "other_processes", "host_ram"
};

}  // namespace headroom::doctor
