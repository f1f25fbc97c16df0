// A model to run without training: its files checked, its plan's request, its device, its weights loaded.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "formats/safetensors_index.h"
#include "options/batch_options.h"
#include "options/machine_options.h"
#include "options/technique_options.h"
#include "passes/lora.h"
#include "plan/plan.h"
#include "runtime/executor.h"
#include "weights/adapter_files.h"
#include "weights/model_files.h"

namespace headroom {

// The common options of evaluation and generation.
struct InferenceOptions {
  std::filesystem::path model;    // a model's directory, or an adapter's, whose config names its base
  std::filesystem::path adapter;  // a LoRA adapter to apply; empty: none
  BatchOptions data;              // of evaluation: files, length and masked share
  MachineOptions machine;
  TechniqueOptions techniques;  // precision and pins

  bool operator==(const InferenceOptions&) const = default;
};

// Lines for people: where weights are kept, what the machine lacks. May be empty. Called on the calling thread.
using Notes = std::function<void(const std::string&)>;

class OpenedModel {
 public:
  enum class Head : uint8_t { needed, left_out };  // of an encoder; decoders always have theirs

  // Reads config and headers. `purpose` completes "headroom cannot ...": "evaluate". Throws Error(usage | format).
  OpenedModel(const InferenceOptions& options, const char* purpose, Notes notes, Head head = Head::needed);

  const ModelFiles& files() const { return model_; }
  // The adapter's; rank 0 if there is none. Throws Error(format).
  LoraOptions adapter_options() const;
  // The request of a plan, without program and length. `tokenizer_stays`: it is held together with the arena. Sets the
  // team's threads. Throws Error(usage) for options that do not fit together, Error(does_not_fit) for a budget above
  // the machine.
  PlanRequest request(bool tokenizer_stays) const;
  // The device of a plan, with room for its arenas. `unit`: the result of one run of the plan's program, for the notes.
  // Throws as open_device and require_room.
  std::unique_ptr<Device> open_device_for(const Plan& plan, const std::string& unit) const;
  // Passes on the device's notes once kernels are prepared; then loads the weights and the adapter, and runs "load".
  void load(Executor& executor, const LoraOptions& lora) const;
  // Frees the function that gets the notes; there are none from then on.
  void forget_notes() { notes_ = nullptr; }

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
