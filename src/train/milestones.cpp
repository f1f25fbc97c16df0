#include "train/milestones.h"

#include <cmath>

namespace headroom {

bool saves_after(const SavingOptions& saving, int64_t step) {
  return saving.save_steps > 0 && step % saving.save_steps == 0;
}

bool evaluates_after(const EvaluationOptions& evaluation, const SavingOptions& saving, int64_t step) {
  return evaluation.eval_steps > 0 ? step % evaluation.eval_steps == 0 : saves_after(saving, step);
}

bool record_evaluation(double loss, RunState& state) {
  const bool better = std::isfinite(loss) && (state.best_eval_loss == 0 || loss < state.best_eval_loss);
  state.evals_since_best = better ? 0 : state.evals_since_best + 1;
  if (!better) return false;
  state.best_eval_loss = loss;
  state.best_step = state.step;
  return true;
}

std::optional<EarlyStop> early_stop_after(const RunState& state, int64_t patience, int64_t total_steps) {
  if (patience == 0 || state.evals_since_best < patience || state.step == total_steps) return std::nullopt;
  return EarlyStop{state.evals_since_best, state.best_step, state.best_eval_loss};
}

}  // namespace headroom
