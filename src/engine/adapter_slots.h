// The slots of LoRA adapters in a server's arena: how many and how large, and what lies in them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/model_spec.h"
#include "passes/lora_slots.h"
#include "runtime/executor.h"
#include "train/adapter_files.h"

namespace headroom {

struct NamedAdapter {
  std::string name;
  std::filesystem::path directory;
};

// What is not given is chosen: as many slots as there are adapters, of the largest of their ranks.
struct LoraSlotOptions {
  bool enabled = false;                // slots where no adapter is named: one of rank 16
  std::optional<int64_t> max_loras;    // slots
  std::optional<int64_t> max_rank;     // of an adapter
  std::vector<std::string> targets;    // what has slots; none: what `adapters` name, or all linear layers
  std::vector<NamedAdapter> adapters;  // loaded before requests are taken

  bool wanted() const { return enabled || max_loras || !adapters.empty(); }
};

// The slots that the options ask for; none where they ask for none. Reads configs and headers of the adapters. Throws
// Error(usage | format) for numbers out of range and for adapters that do not fit.
LoraSlots planned_slots(const LoraSlotOptions& options, const ModelSpec& spec, DType dtype);

// The most heap that loading one adapter holds at once.
int64_t adapter_loading_bytes(const LoraSlots& slots, const ModelSpec& spec);

// Used by one thread, the one that runs the executor's programs.
class AdapterSlots {
 public:
  // The executor's plan has these slots. Executor and spec outlive this.
  AdapterSlots(Executor& executor, const ModelSpec& spec, const LoraSlots& slots);

  // Throws as load() for what does not fit, and changes nothing.
  void check(const std::filesystem::path& directory) const { open(directory); }
  // Fills a slot, which no row of a step uses meanwhile, from an adapter's directory; at most adapter_loading_bytes()
  // of heap. Throws Error(usage | format) before it changes the slot for what does not fit, with the numbers; Error
  // (format | run) for a file that is cut while it is read: then the slot holds no adapter.
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
