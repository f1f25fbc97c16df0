#include "train/run_saver.h"

#include <fmt/format.h>

#include "weights/adapter.h"
#include "weights/saved_model.h"

namespace headroom {

namespace fs = std::filesystem;

RunSaver::RunSaver(const TrainOptions& options, const ModelFiles& model, Executor& executor, const TrainEvents& events,
                   RunLog& log)
    : options_(options), model_(model), executor_(executor), events_(events), log_(log) {}

fs::path RunSaver::checkpoint_of(int64_t step) const {
  return options_.saving.output_dir / fmt::format("checkpoint-{}", step);
}

void RunSaver::checkpoint(const RunState& state) {
  if (saved_at_ == state.step) return;
  log_.sync();
  save_checkpoint(executor_, model_, state, options_);
  saved_at_ = state.step;
  if (events_.saved) events_.saved(state.step, checkpoint_of(state.step).string());
}

bool RunSaver::has_best(const RunState& state) const {
  return state.best_step == 0 || fs::exists(checkpoint_of(state.best_step));
}

void RunSaver::load_best(const RunState& state) {
  if (state.best_step == 0 || state.best_step == state.step) return;
  load_weights_of_checkpoint(executor_, model_, options_.techniques.lora, checkpoint_of(state.best_step));
  events_.say(
      fmt::format("the model is that of step {}, evaluation loss {:.4f}", state.best_step, state.best_eval_loss));
}

void RunSaver::final_model() {
  const fs::path& out = options_.saving.output_dir;
  if (options_.techniques.lora.rank > 0)
    write_adapter(executor_, model_, options_.techniques.lora, out);
  else
    write_model(executor_, model_, saved_dtype(options_.saving, options_.techniques), out);
  log_.sync();
}

}  // namespace headroom
