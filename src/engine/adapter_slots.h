// The slots of LoRA adapters in a server's arena: their number, size and contents.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/model_spec.h"
#include "passes/lora_slots.h"
#include "runtime/executor.h"
#include "weights/adapter_files.h"

namespace headroom {

struct NamedAdapter {
  std::string name;
  std::filesystem::path directory;
};

// The defaults are as many slots as there are adapters, with the largest of their ranks.
struct LoraSlotOptions {
  bool enabled = false;                // slots although no adapter is named: one of rank 16
  std::optional<int64_t> max_loras;    // slots
  std::optional<int64_t> max_rank;     // of an adapter
  std::vector<std::string> targets;    // modules with slots; empty: those that `adapters` name, or all linear layers
  std::vector<NamedAdapter> adapters;  // loaded before requests are accepted

  bool wanted() const { return enabled || max_loras || !adapters.empty(); }
};

// The slots for the options; none if they request none. Reads configs and headers of the adapters. Throws Error(usage |
// format) for numbers out of range and for adapters that do not fit.
LoraSlots planned_slots(const LoraSlotOptions& options, const ModelSpec& spec, DType dtype);

// The most heap that loading one adapter holds at once.
int64_t adapter_loading_bytes(const LoraSlots& slots, const ModelSpec& spec);

// Used by one thread, the one that runs the executor's programs.
class AdapterSlots {
 public:
  // The executor's plan has these slots. Executor and spec outlive this.
  AdapterSlots(Executor& executor, const ModelSpec& spec, const LoraSlots& slots);

  // Throws as load() for adapters that do not fit, and changes nothing.
  void check(const std::filesystem::path& directory) const { open(directory); }
  // Fills a slot, which no row of a step may use meanwhile, from an adapter's directory; uses at most
  // adapter_loading_bytes() of heap. Throws Error(usage | format) before it changes the slot for an adapter that does
  // not fit, with the figures; Error(format | run) for a file that is truncated while it is read: then the slot holds
  // no adapter.
  void load(int64_t slot, const std::filesystem::path& directory);

 private:
  struct Target {
    std::string a, b;  // in an adapter's file
    TensorView a_slots, b_slots;
  };
  AdapterFiles open(const std::filesystem::path& directory) const;

  const ModelSpec& spec_;
  LoraSlots slots_;
  std::vector<Target> targets_;
  TensorView scales_;
};

}  // namespace headroom
