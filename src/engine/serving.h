// A model for serving: the plan of its arena, and the runner of its steps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/adapter_slots.h"
#include "engine/opened_model.h"
#include "engine/park_file.h"
#include "engine/streamed_weights.h"
#include "generate/scheduler.h"
#include "generate/step_runner.h"
#include "tokenizer/tokenizer.h"

namespace headroom {

// The defaults are the longest sequence of the model, then as many sequences as fit.
struct ServingOptions {
  std::optional<int64_t> max_model_len;           // tokens of one sequence
  std::optional<int64_t> max_num_seqs;            // sequences of one step
  std::optional<int64_t> max_num_batched_tokens;  // tokens of one step
  int64_t block_size = 16;
  std::string kv_cache_dtype = "auto";   // the type of --precision; f32, bf16, f16; int8, which is lossy
  std::string admission = "guaranteed";  // or balanced
  // The size of the park area of balanced admission: on the disk with MachineOptions::disk_memory, else in the arena.
  // Default: what weights leave of --disk-memory, but no more than all sequences need; in the arena one sequence of
  // full length.
  std::optional<int64_t> park_memory;
  LoraSlotOptions lora;
  int64_t outside_bytes = 0;  // heap that the server needs besides the engine: connections, requests, answers
  // Further such heap that depends on the sizes chosen: the scheduler's tables. May be empty. Pure; grows with every
  // limit.
  std::function<int64_t(const StepLimits&)> outside;
};

// One line of `plan --serve` and of /metrics.
struct ServingRegion {
  std::string name;  // weights, windows, kv_pool, activations, logits, ...
  int64_t bytes = 0;
};

struct ServingPlan {
  Plan plan;  // not feasible: nothing can be served; plan.minimum_bytes says what would be enough
  StepLimits limits;
  int64_t pool_tokens() const { return limits.blocks * limits.block_tokens; }
  std::vector<ServingRegion> regions;  // add up to plan.peak_bytes; none for a plan that is not feasible
  DType cache = DType::f32;            // i8: codes with a scale for each kv head of each token
  LoraSlots lora;                      // count 0: none
  AdmissionRule rule = AdmissionRule::guaranteed;
  int64_t block_bytes = 0;  // of a block of the pool, over all layers
  bool parks_on_disk = false;
  std::filesystem::path park_directory;
  // For the park area, in the arena or its file.
  int64_t park_bytes() const;
  StreamedWeights streamed;
  std::string placement;  // of weights in lower tiers, in words; empty if there are none
  // Of files: weights and the park area.
  int64_t disk_bytes() const { return plan.disk.arena_bytes + (parks_on_disk ? park_bytes() : 0); }
};

// Plans without reading weights, so a config.json alone is enough, and prints nothing. Throws Error(usage | format).
ServingPlan plan_serving(const InferenceOptions& options, const ServingOptions& serving, const Notes& notes = {});

// The file of a plan that parks on disk, fully allocated; null for other plans. Throws as ScratchFile.
std::unique_ptr<ParkFile> reserve_park(const ServingPlan& plan);

// A device with room for a plan, on disk too, and the file of its park area: what a server reserves before it opens its
// socket.
class ServingRoom {
 public:
  // Keeps a copy of the options. Throws Error(usage | format | does_not_fit | run); the caller must refuse a plan that
  // is not feasible first. `park`: the file of a plan that parks on disk; null: made here.
  ServingRoom(const InferenceOptions& options, ServingPlan plan, const Notes& notes = {},
              std::unique_ptr<ParkFile> park = nullptr);
  ServingRoom(ServingRoom&&) noexcept;
  ~ServingRoom();

 private:
  friend class ServedModel;
  class Parts;
  std::unique_ptr<Parts> parts_;
};

// The model, loaded and ready. Owns plan, device, executor; runner() is used only by the thread that made it.
class ServedModel {
 public:
  // Throws as ServingRoom, which has the same arguments.
  ServedModel(const InferenceOptions& options, ServingPlan plan, const Notes& notes = {},
              std::unique_ptr<ParkFile> park = nullptr)
      : ServedModel(ServingRoom(options, std::move(plan), notes, std::move(park))) {}
  explicit ServedModel(ServingRoom room);
  ~ServedModel();

  StepRunner& runner();
  // As check() and load() of AdapterSlots, for a plan with slots; call on the thread of runner(), between its steps.
  void check_adapter(const std::filesystem::path& directory) const;
  void load_adapter(int64_t slot, const std::filesystem::path& directory);
  const ServingPlan& plan() const;
  const ModelFiles& files() const;
  const Tokenizer& tokenizer() const;  // may be used by several threads
  int64_t arena_high_water() const;    // bytes; never above plan().plan.arena_bytes

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace headroom
