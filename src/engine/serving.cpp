#include "engine/serving.h"

#include <malloc.h>

#include <utility>

#include "base/threads.h"
#include "device/device.h"
#include "engine/model_steps.h"

namespace headroom {

class ServingRoom::Parts {
 public:
  Parts(const InferenceOptions& asked, ServingPlan planned, const Notes& notes, std::unique_ptr<ParkFile> file)
      : options(asked),
        plan(std::move(planned)),
        park(file ? std::move(file) : reserve_park(plan)),
        opened(options, "serve", notes, OpenedModel::Head::left_out),
        device(opened.open_device_for(plan.plan, "each token")) {}

  const InferenceOptions options;
  const ServingPlan plan;
  const std::unique_ptr<ParkFile> park;
  const OpenedModel opened;
  std::unique_ptr<Device> device;
};

class ServedModel::Parts {
 public:
  explicit Parts(std::unique_ptr<ServingRoom::Parts> taken) : room(std::move(taken)) {
    const ServingPlan& plan = room->plan;
    const OpenedModel& opened = room->opened;
    set_threads(plan.plan.facts.threads);
    tokenizer.emplace(Tokenizer::load(opened.files().tokenizer));
    executor.emplace(plan.plan, *room->device, nullptr);
    opened.load(*executor, opened.adapter_options());
    ::malloc_trim(0);
    steps.emplace(*executor, plan.limits, room->park.get());
    if (plan.lora.count > 0) slots.emplace(*executor, opened.files().spec, plan.lora);
  }

  const std::unique_ptr<ServingRoom::Parts> room;
  std::optional<Tokenizer> tokenizer;
  std::optional<Executor> executor;
  std::optional<ModelSteps> steps;
  std::optional<AdapterSlots> slots;
};

std::unique_ptr<ParkFile> reserve_park(const ServingPlan& plan) {
  if (!plan.parks_on_disk || plan.limits.park_slots == 0) return nullptr;
  return std::make_unique<ParkFile>(plan.park_directory, plan.limits.park_slots, plan.block_bytes);
}

int64_t ServingPlan::park_bytes() const {
  return limits.park_slots * (parks_on_disk ? ParkFile::slot_bytes(block_bytes) : block_bytes);
}

ServingRoom::ServingRoom(const InferenceOptions& options, ServingPlan plan, const Notes& notes,
                         std::unique_ptr<ParkFile> park)
    : parts_(std::make_unique<Parts>(options, std::move(plan), notes, std::move(park))) {}
ServingRoom::ServingRoom(ServingRoom&&) noexcept = default;
ServingRoom::~ServingRoom() = default;

ServedModel::ServedModel(ServingRoom room) : parts_(std::make_unique<Parts>(std::move(room.parts_))) {}
ServedModel::~ServedModel() = default;

StepRunner& ServedModel::runner() { return *parts_->steps; }
void ServedModel::check_adapter(const std::filesystem::path& directory) const {
  parts_->slots.value().check(directory);
}
void ServedModel::load_adapter(int64_t slot, const std::filesystem::path& directory) {
  parts_->slots.value().load(slot, directory);
}
const ServingPlan& ServedModel::plan() const { return parts_->room->plan; }
const ModelFiles& ServedModel::files() const { return parts_->room->opened.files(); }
const Tokenizer& ServedModel::tokenizer() const { return *parts_->tokenizer; }
int64_t ServedModel::arena_high_water() const { return parts_->executor->arena_high_water(); }

}  // namespace headroom
