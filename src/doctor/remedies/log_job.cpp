#include "doctor/remedies/log_job.h"

#include <array>
#include <string_view>

namespace headroom::doctor {
namespace {

template <size_t N>
bool any_in(const std::string& log, const std::array<std::string_view, N>& words) {
  for (const std::string_view word : words)
    if (log.find(word) != std::string::npos) return true;
  return false;
}

constexpr std::array<std::string_view, 10> kThird = {
    "zero stage3", "zero stage 3", "zero_stage 3", "zero-stage 3",     "zero-3",
    "zero 3",      "zero3",        "stage3.py",    "optimizer_stage3", "partition_parameters.py"};
constexpr std::array<std::string_view, 8> kSecond = {"zero stage2", "zero stage 2", "zero_stage 2", "zero-stage 2",
                                                     "zero-2",      "zero 2",       "zero2",        "stage_1_and_2.py"};

}  // namespace

void take_sharding_of_log(const std::string& log, Job& job) {
  if (job.task != Task::train || job.parallel.sharding) return;
  const bool third = any_in(log, kThird), second = any_in(log, kSecond);
  if (third == second) return;  // none, or a comparison of both
  job.parallel.sharding = third ? Sharding::zero3 : Sharding::zero2;
  job.parallel.deepspeed = true;
  if (job.system == System::unknown || job.system == System::pytorch_script) job.system = System::deepspeed;
}

}  // namespace headroom::doctor
