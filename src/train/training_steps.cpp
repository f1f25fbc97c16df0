#include "train/training_steps.h"

#include <chrono>
#include <cmath>

#include "train/schedule.h"

namespace headroom {
namespace {

using Clock = std::chrono::steady_clock;

// The first steps of a run use the plan's full length, whatever their rows, so that all planned memory has been used
// once.
constexpr int64_t kFullLengthSteps = 2;

}  // namespace

TrainingSteps::TrainingSteps(const TrainOptions& options, Executor& executor, BatchPort& port, const SequenceSet& data,
                             const RowTargets& targets, bool classifies, int64_t total_steps)
    : options_(options),
      optimizer_(optimizer_settings(options.optimizer)),
      executor_(executor),
      port_(port),
      data_(data),
      classifies_(classifies),
      total_(total_steps),
      reader_(data.cache, SampleOrder(data.samples(), options.seed, options.data.shuffle),
              executor.plan().choices.seq_length, options.data.global_batch_size, targets, data.packs_or_null(),
              !executor.plan().choices.buckets.empty()),
      programs_(executor.plan(), "train_step"),
      measured_(executor.plan(), options.saving.output_dir) {}

const std::string& TrainingSteps::program_of(int64_t step, const SampleRange& range) const {
  return step <= kFullLengthSteps ? programs_.full() : programs_.holding(reader_.longest(0, range.count));
}

StepReport TrainingSteps::report_of(int64_t step, const std::string& program, double rate, double loss_scale) const {
  const TensorView result = executor_.result(program, 0);
  double sums_buffer[3], squares_buffer[1];
  const std::span<const double> sums =
      executor_.get<double>(result, std::span(sums_buffer).first(static_cast<size_t>(result.count())));
  const double squares = executor_.get<double>(executor_.tensor("grad_sum_squares"), squares_buffer)[0];
  StepReport report;
  report.step = step;
  report.total_steps = total_;
  report.loss = sums[1] > 0 ? sums[0] / sums[1] : 0;
  report.grad_norm = std::sqrt(squares) / loss_scale;
  report.learning_rate = rate;
  report.tokens = reader_.tokens();
  if (sums.size() > 2) report.accuracy = sums[1] > 0 ? sums[2] / sums[1] : 0;
  return report;
}

// Runs the step's program on its batch with drawn labels. A gradient that is not finite changes nothing.
void TrainingSteps::estimate_curvature(const std::string& program, std::span<const Trips> trips, StepScalars scalars,
                                       int64_t targets) {
  scalars.set("drawn_labels", static_cast<double>(targets));
  executor_.put<float>(executor_.tensor("hyper"), scalars.values());
  executor_.run(program, trips);
}

StepReport TrainingSteps::run(RunState& state) {
  const Clock::time_point begin = Clock::now();
  const int64_t step = state.step + 1;
  const SampleRange range = samples_from(state.next_sample, data_.samples(), options_.data.global_batch_size);
  const int64_t targets = reader_.begin(range);
  port_.set_reader(&reader_);
  const double rate = learning_rate_at(options_.schedule, step, total_);
  const StepScalars scalars = step_scalars(options_, optimizer_, rate, step, targets, state.scaling);
  const int64_t micro_batch = executor_.plan().choices.micro_batch;
  const Trips trips[] = {{"micro_batches", (range.count + micro_batch - 1) / micro_batch}};
  const std::string& program = program_of(step, range);
  if (targets > 0 && estimates_before(optimizer_, step - state.scaling.skipped))
    estimate_curvature(program, trips, scalars, targets);
  executor_.put<float>(executor_.tensor("hyper"), scalars.values());
  if (program == programs_.full()) measured_.begin(executor_, trips[0].count);
  executor_.run(program, trips);
  StepReport report = report_of(step, program, rate, state.scaling.scale);
  report.samples = classifies_ ? range.count : 0;
  report.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  report.resident_bytes = resident_bytes();
  peak_.include(report.resident_bytes);
  measured_.end(executor_, step == total_, peak_);
  state.step = step;
  state.next_sample = range.first + range.count;
  return report;
}

}  // namespace headroom
