// Memory outside the arena is checked: it is known before the arena is reserved and before anything is written, and
// refused if it exceeds what the plan books.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../runtime/tiny_run.h"
#include "cuda_shim/host_runtime.h"
#include "device/cuda/cuda_device.h"
#include "device/disk/scratch_file.h"
#include "engine/train_model.h"
#include "formats/json.h"
#include "planner/estimates.h"
#include "runtime/outside_arena.h"

namespace headroom {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

class OutsideTheArena : public testing::Test {
 protected:
  OutsideTheArena() { write_tiny_model(directory_); }
  ~OutsideTheArena() override { limits_of_cuda0() = before_; }

  TrainOptions options() const {
    TrainOptions options = tiny_options(directory_);
    options.machine.device = "cuda:0";
    options.machine.profile = kUnmeasuredGpu;
    options.data.global_batch_size = 4;
    options.data.max_seq_length = 16;
    options.schedule.max_steps = 1;
    return options;
  }
  // Trains like the program; returns the notes that it prints.
  std::vector<std::string> train_whole(const TrainOptions& options) {
    std::vector<std::string> notes;
    TrainEvents events;
    events.note = [&](const std::string& note) { notes.push_back(note); };
    RunControl control;
    plan_ = train_model(options, events, control).plan;
    return notes;
  }
  // The refusal of such a run, which must leave no files.
  std::string refusal(const TrainOptions& options) {
    try {
      train_whole(options);
      ADD_FAILURE() << "no refusal";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
      EXPECT_FALSE(std::filesystem::exists(options.saving.output_dir));
      return fmt::format("{}\n{}", error.what(), error.remedy());
    }
    return {};
  }

  TemporaryDirectory directory_;
  Plan plan_;
  const HostRuntimeLimits before_ = limits_of_cuda0();
};

TEST_F(OutsideTheArena, MoreThanIsBookedIsRefusedBeforeAnythingIsWritten) {
  const int64_t booked = load_profile(kUnmeasuredGpu).context_bytes;
  limits_of_cuda0().context_bytes = booked - 40 * kMiB;
  limits_of_cuda0().stream_bytes = kMiB;
  limits_of_cuda0().kernel_bytes = 4 * kMiB;
  EXPECT_THAT(refusal(options()),
              AllOf(HasSubstr(fmt::format("the plan books {} (600 MiB)", booked)),
                    HasSubstr(fmt::format("{} bytes by the context and the libraries' handles", booked - 39 * kMiB)),
                    HasSubstr(" bytes by kernels and the libraries' plans"),
                    HasSubstr("`headroom profile --device cuda:0`"), HasSubstr("context_bytes is ")));
  EXPECT_EQ(host_runtime_allocations(), 0);
  limits_of_cuda0().kernel_bytes = 0;
  train_whole(options());
}

TEST_F(OutsideTheArena, WhatLibrariesLeaveFreeIsKnownBeforeAnythingIsWritten) {
  limits_of_cuda0().tells = false;
  limits_of_cuda0().kernel_bytes = 64 * kMiB;
  limits_of_cuda0().total_bytes = kHostRuntimeContext + 48 * kMiB;  // for the arena alone
  EXPECT_THAT(refusal(options()), HasSubstr(" free of 304 MiB"));
  EXPECT_EQ(host_runtime_allocations(), 0);
  limits_of_cuda0().kernel_bytes = 0;
  train_whole(options());
}

TEST_F(OutsideTheArena, IsWrittenDownAsFarAsItIsKnown) {
  for (const bool tells : {true, false}) {
    limits_of_cuda0().tells = tells;
    TrainOptions here = options();
    here.saving.output_dir = directory_ / (tells ? "told" : "untold");
    const std::vector<std::string> notes = train_whole(here);
    EXPECT_THAT(notes, testing::Contains(HasSubstr("600 MiB of the device")));
    const Json run = read_json(here.saving.output_dir / "run.json", kMiB);
    EXPECT_EQ(run["device_outside_arena_bytes"], tells ? Json(kHostRuntimeContext) : Json(nullptr));
  }
}

// Memory that other processes take in the meantime is not this process's.
TEST_F(OutsideTheArena, WhatOthersHoldIsNeverOurs) {
  limits_of_cuda0().tells = false;
  limits_of_cuda0().held_by_others = int64_t{3} << 30;
  train_whole(options());
}

// All streams and events, for copies to every tier, are created before the arena.
TEST_F(OutsideTheArena, StreamsAndEventsComeBeforeTheArena) {
  TrainOptions offloaded = options();
  offloaded.data.micro_batch_size = 2;
  for (const char* name : {"offload-optimizer", "offload-gradients"}) offloaded.techniques.pins[name] = "on";
  std::vector<const char*> tiers{"host"};
  try {
    const ScratchFile file(directory_.path(), kDiskBlockBytes);
    tiers.push_back("disk");
  } catch (const Error&) {
  }
  for (const std::string tier : tiers) {
    SCOPED_TRACE(tier);
    TrainOptions there = offloaded;
    if (tier == "disk") there.machine.disk_directory = directory_.path(), there.machine.disk_memory = int64_t{1} << 30;
    TinyRun run(
        there, directory_ / tier,
        [&](const DeviceFacts& facts) {
          return make_cuda_device(make_host_runtime(), facts, {}, there.machine.disk_directory);
        },
        tier == "host" ? int64_t{1} << 30 : 0);
    EXPECT_GT(run.plan().host.arena_bytes + run.plan().disk.arena_bytes, 0);
    EXPECT_EQ(host_runtime_allocations(), 1);
    EXPECT_EQ(host_runtime_made_late(), 0);
  }
}

}  // namespace
}  // namespace headroom
