#include "train/measured_steps.h"

#include "formats/atomic_dir.h"
#include "train/operation_times.h"

namespace headroom {
namespace {

constexpr int kMeasured = 2;

}  // namespace

MeasuredSteps::MeasuredSteps(const Plan& plan, std::filesystem::path directory)
    : program_(*plan.program("train_step")),
      directory_(std::move(directory)),
      probe_(std::make_unique<StepProbe>(program_)) {}

void MeasuredSteps::begin(Executor& executor, int64_t trips) {
  if (!probe_) return;
  ++steps_;
  probe_->begin(trips);
  executor.set_interrupt([this] { return probe_->after_kernel(), false; });
}

void MeasuredSteps::end(Executor& executor, bool last, RecordedPeak& peak) {
  executor.set_interrupt({});
  if (!probe_ || (steps_ < kMeasured && !last)) return;
  peak.include(probe_->highest_resident());
  write_text_durably(directory_ / "measured.json", probe_->json());
  write_text_durably(directory_ / "operations.json", operations_json(program_, probe_->seconds(), probe_->calls()));
  probe_.reset();
}

}  // namespace headroom
