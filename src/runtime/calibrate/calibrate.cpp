#include "runtime/calibrate/calibrate.h"

#include <utility>

#include "runtime/calibrate/round.h"
#include "runtime/copy_streams.h"

namespace headroom {
namespace {

constexpr int kRounds = 3;      // over all points, since a machine's speed varies from second to second
constexpr int kMoreRounds = 3;  // over disturbed ones

}  // namespace

Profile calibrate(Device& device, const DeviceFacts& facts, const std::string& name,
                  const std::function<void(double)>& progress, const CalibrationSizes& sizes, Stopwatch stopwatch) {
  make_streams_of_any_plan(device);
  TimedCalls calls(device, facts, sizes, std::move(stopwatch));
  double done = 0;
  const auto step = [&] { progress(++done / ((kRounds + kMoreRounds) * kStepsOfRound + 1)); };
  warm_up(calls, sizes);
  step();
  calls.begin();
  Profile profile;
  for (int round = 0; round < kRounds + kMoreRounds; ++round) {
    calls.begin_round(round >= kRounds);
    profile = measure_round(calls, facts, sizes, step);
  }
  profile.name = name;
  const DeviceMemory memory = device.memory();
  profile.memory_bytes = memory.total_bytes;
  profile.context_bytes = memory.outside_arena_bytes.value_or(0);
  return parse_profile(profile_json(profile), name);
}

}  // namespace headroom
