// A model to run without training it: its files checked, its plan's request, its device, its weights loaded.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "formats/safetensors_index.h"
#include "passes/lora.h"
#include "plan/plan.h"
#include "runtime/executor.h"
#include "train/adapter_files.h"
#include "train/model_files.h"
#include "train/options.h"

namespace headroom {

// What evaluation and generation take alike.
struct InferenceOptions {
  std::filesystem::path model;    // a model's directory, or an adapter's, whose config names its base
  std::filesystem::path adapter;  // a LoRA adapter to apply; empty: none
  BatchOptions data;              // of evaluation: files, length and masked share
  MachineOptions machine;
  TechniqueOptions techniques;  // precision and pins
};

// Lines for people: where weights wait, what the machine lacks. May be empty. Called on the calling thread.
using Notes = std::function<void(const std::string&)>;

class OpenedModel {
 public:
  enum class Head : uint8_t { needed, left_out };  // of an encoder; decoders have theirs in any case

  // Reads config and headers. `purpose` completes "headroom cannot ...": "evaluate". Throws Error(usage | format).
  OpenedModel(const InferenceOptions& options, const char* purpose, Notes notes, Head head = Head::needed);

  const ModelFiles& files() const { return model_; }
  // The adapter's; rank 0 where there is none. Throws Error(format).
  LoraOptions adapter_options() const;
  // The request of a plan, less program and length. `tokenizer_stays` while the arena is there. Sets the team's
  // threads. Throws Error(usage) for what does not go together, Error(does_not_fit) for a budget above the machine.
  PlanRequest request(bool tokenizer_stays) const;
  // The device of a plan, with room for its arenas. `unit`: what one run of the plan's program makes, for the notes.
  // Throws as open_device and require_room.
  std::unique_ptr<Device> open_device_for(const Plan& plan, const std::string& unit) const;
  // Notes what the device says of itself once kernels are prepared; weights, then what the adapter holds, then the
  // program "load".
  void load(Executor& executor, const LoraOptions& lora) const;

 private:
  void note(const std::string& text) const {
    if (notes_ && !text.empty()) notes_(text);
  }
  void check_head(const SafetensorsSet& files) const;

  const InferenceOptions& options_;
  Notes notes_;
  ModelFiles model_;
  std::optional<AdapterFiles> adapter_;
};

}  // namespace headroom
