// doctor's answer for headroom itself: the planner says the least budget.
#include "arguments/train_options.h"
#include "cli/command.h"
#include "cli/doctor_command.h"
#include "planner/search.h"
#include "train/setup.h"

namespace headroom {
namespace {

std::optional<int64_t> least_budget(const doctor::HeadroomJob& job) {
  TrainArguments arguments;
  arguments.options.model = job.model;
  arguments.options.global_batch_size = job.global_batch;
  arguments.options.max_seq_length = job.sequence;
  arguments.options.precision = job.precision;
  arguments.options.lora.rank = job.lora_rank;
  arguments.options.memory = int64_t{1} << 20;
  const TrainOptions options = resolve(arguments);
  const ModelFiles model = open_model(options.model);
  const SearchResult result = search_training_plan(training_request(options, model));
  return result.plan.minimum_bytes;
}

}  // namespace

Command doctor_command() { return make_doctor_command(least_budget); }

}  // namespace headroom
