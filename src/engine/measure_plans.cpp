#include "engine/measure_plans.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/bytes.h"
#include "base/error.h"
#include "base/threads.h"
#include "device/device.h"
#include "engine/budget.h"
#include "engine/refusal.h"
#include "engine/training_request.h"
#include "formats/json.h"
#include "planner/search.h"
#include "runtime/executor.h"
#include "train/initial_state.h"
#include "train/schedule.h"

namespace headroom {
namespace {

constexpr size_t kPlans = 3;
constexpr int64_t kSteps = 5;

// Batches of random tokens, every one of them a target; for classifiers the class of each row.
class DrawnBatches final : public HostPort {
 public:
  explicit DrawnBatches(const ModelSpec& spec) : spec_(spec) {}

  void next_batch(int64_t trip, std::span<int32_t> ids, std::span<int32_t> labels, int64_t batch,
                  int64_t seq) override {
    uint64_t drawn = 0x9e3779b97f4a7c15u * static_cast<uint64_t>(trip + 1);
    for (int32_t& id : ids) {
      drawn = drawn * 6364136223846793005u + 1442695040888963407u;
      id = static_cast<int32_t>((drawn >> 33) % static_cast<uint64_t>(spec_.vocab));
    }
    std::copy(ids.begin(), ids.end(), labels.begin());
    if (spec_.objective == Objective::classification) label_rows(ids, labels, batch, seq);
  }

 private:
  // The first position of encoders, the last one of decoders.
  void label_rows(std::span<const int32_t> ids, std::span<int32_t> labels, int64_t batch, int64_t seq) const {
    std::fill(labels.begin(), labels.end(), -100);
    for (int64_t row = 0; row < batch; ++row) {
      const auto at = static_cast<size_t>(row * seq + (spec_.causal ? seq - 1 : 0));
      labels[at] = ids[at] % static_cast<int32_t>(spec_.classes);
    }
  }

  const ModelSpec& spec_;
};

std::vector<Plan> best_plans(const PlanRequest& request) {
  std::vector<Plan> plans;
  search_by_budget(request, int64_t{1} << 40, [&](const Plan& plan) {
    throw_if_unfit(plan);
    plans.push_back(plan);
    return plans.size() < kPlans;
  });
  return plans;
}

double seconds_of_step(Executor& executor, const TrainOptions& options, const OptimizerSettings& optimizer,
                       int64_t step) {
  using Clock = std::chrono::steady_clock;
  const Choices& choices = executor.plan().choices;
  const Clock::time_point begin = Clock::now();
  const int64_t targets = options.data.global_batch_size * choices.seq_length;
  executor.put<float>(executor.tensor("hyper"),
                      step_scalars(options, optimizer, options.schedule.learning_rate, step, targets).values());
  const Trips trips[] = {
      {"micro_batches", (options.data.global_batch_size + choices.micro_batch - 1) / choices.micro_batch}};
  executor.run("train_step", trips);
  double sums[3];  // read after each step, which waits for the device
  const TensorView result = executor.result("train_step", 0);
  executor.get<double>(result, std::span(sums).first(static_cast<size_t>(result.count())));
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double measured_seconds(const Plan& plan, const TrainOptions& options, const ModelSpec& spec) {
  const std::unique_ptr<Device> device =
      open_device(options.machine.device, plan.facts, options.machine.disk_directory);
  for (const Tier tier : kArenaTiers) device->require_room(tier, plan.arenas().of(tier));
  DrawnBatches batches(spec);
  Executor executor(plan, *device, &batches);
  fill_drawn(executor, spec, options.seed);
  const OptimizerSettings optimizer = optimizer_settings(options.optimizer);
  seconds_of_step(executor, options, optimizer, 1);  // touches its memory
  std::array<double, kSteps> seconds{};
  for (int64_t step = 0; step < kSteps; ++step)
    seconds[static_cast<size_t>(step)] = seconds_of_step(executor, options, optimizer, step + 2);
  std::nth_element(seconds.begin(), seconds.begin() + kSteps / 2, seconds.end());
  return seconds[kSteps / 2] * passes_per_step(optimizer);
}

PlanRequest request_here(TrainOptions& options, const ModelFiles& model) {
  if (device_kind(options.machine.device) == DeviceKind::null)
    throw Error(ErrorKind::usage, "--measure runs steps, which the null device cannot compute",
                "give --device cpu or cuda:N and no --profile of another device");
  options.machine.runs_here = true;
  PlanRequest request = training_request(options, model);
  if (!options.machine.force)
    refuse_budgets_above_machine(options.machine.device, options.machine.memory, options.machine.host_memory);
  set_threads(request.facts.threads);
  return request;
}

}  // namespace

PlanMeasurements measure_best_plans(TrainOptions options, const ModelFiles& model,
                                    const std::function<void(const std::string&)>& note) {
  PlanMeasurements out;
  for (const Plan& plan : best_plans(request_here(options, model))) {
    if (note)
      note(fmt::format("{} steps with {}, predicted {:.3g} s each", kSteps + 1, format_bytes(plan.peak_bytes),
                       plan.step_seconds));
    out.plans.push_back(
        {plan.step_seconds, measured_seconds(plan, options, model.spec), plan.peak_bytes, taken_techniques(plan), ""});
  }
  const auto fastest = std::min_element(
      out.plans.begin(), out.plans.end(),
      [](const MeasuredPlan& a, const MeasuredPlan& b) { return a.measured_seconds < b.measured_seconds; });
  out.chosen = static_cast<size_t>(fastest - out.plans.begin());
  return out;
}

std::string measurements_json(const PlanMeasurements& measured) {
  Json plans = Json::array();
  for (const MeasuredPlan& plan : measured.plans)
    plans.push_back({{"predicted_step_seconds", plan.predicted_seconds},
                     {"measured_step_seconds", plan.measured_seconds},
                     {"peak_bytes", plan.peak_bytes},
                     {"choices", plan.choices},
                     {"command", plan.command}});
  return Json{{"plans", std::move(plans)}, {"chosen", measured.chosen}}.dump(2) + "\n";
}

std::string measurements_text(const PlanMeasurements& measured) {
  std::string out = fmt::format("  {:>12} {:>12} {:>12}\n", "predicted s", "measured s", "peak");
  for (size_t i = 0; i < measured.plans.size(); ++i) {
    const MeasuredPlan& plan = measured.plans[i];
    out += fmt::format("{} {:>12.3f} {:>12.3f} {:>12}\n", i == measured.chosen ? ">" : " ", plan.predicted_seconds,
                       plan.measured_seconds, format_bytes(plan.peak_bytes));
    out += fmt::format("  {}\n  {}\n", settings_text(plan.choices), plan.command);
  }
  return out;
}

}  // namespace headroom
