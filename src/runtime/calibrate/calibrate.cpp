#include "runtime/calibrate/calibrate.h"

#include "runtime/calibrate/median.h"
#include "runtime/calibrate/round.h"

namespace headroom {
namespace {

constexpr int kRounds = 3;  // the median of each point counts: machines are faster and slower by the second

}  // namespace

Profile calibrate(Device& device, const DeviceFacts& facts, const std::string& name,
                  const std::function<void(double)>& progress, const CalibrationSizes& sizes) {
  TimedCalls calls(device, facts, sizes);
  double done = 0;
  const auto step = [&] { progress(++done / (kRounds * kStepsOfRound + 1)); };
  warm_up(calls, sizes);
  step();
  std::vector<Profile> rounds;
  for (int round = 0; round < kRounds; ++round) rounds.push_back(measure_round(calls, facts, sizes, step));
  Profile profile = median_of(rounds);
  profile.name = name;
  const DeviceMemory memory = device.memory();
  profile.memory_bytes = memory.total_bytes;
  profile.context_bytes = memory.outside_arena_bytes;
  return parse_profile(profile_json(profile), name);
}

}  // namespace headroom
