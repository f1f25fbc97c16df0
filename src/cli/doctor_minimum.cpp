// doctor's figure for headroom itself: the least budget, from the planner.
#include "arguments/train_options.h"
#include "cli/command.h"
#include "cli/doctor_command.h"
#include "engine/plan_training.h"

namespace headroom {
namespace {

std::optional<int64_t> least_budget(const doctor::HeadroomJob& job) {
  TrainArguments arguments;
  arguments.options.model.path = job.model;
  arguments.options.data.global_batch_size = job.global_batch;
  arguments.options.data.max_seq_length = job.sequence;
  arguments.options.techniques.precision = job.precision;
  arguments.options.techniques.lora.rank = job.lora_rank;
  return least_training_budget(resolve(arguments), open_model(job.model));
}

}  // namespace

Command doctor_command() { return make_doctor_command(least_budget); }

}  // namespace headroom
