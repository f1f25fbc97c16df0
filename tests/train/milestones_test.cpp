// When a run saves and evaluates, and when it ends early.
#include "train/milestones.h"

#include <gtest/gtest.h>

#include <cmath>

namespace headroom {
namespace {

TEST(Milestones, EvaluatesAtEachSaveUnlessAskedOtherwise) {
  EvaluationOptions evaluation;
  SavingOptions saving;
  EXPECT_FALSE(saves_after(saving, 10));
  EXPECT_FALSE(evaluates_after(evaluation, saving, 10));
  saving.save_steps = 5;
  EXPECT_TRUE(saves_after(saving, 10));
  EXPECT_TRUE(evaluates_after(evaluation, saving, 10));
  EXPECT_FALSE(evaluates_after(evaluation, saving, 9));
  evaluation.eval_steps = 3;
  EXPECT_TRUE(evaluates_after(evaluation, saving, 9));
  EXPECT_FALSE(evaluates_after(evaluation, saving, 10));
}

TEST(Milestones, TheBestEvaluationIsTheLowestFiniteLoss) {
  RunState state;
  const double losses[] = {NAN, 2, 3, INFINITY, 1};
  const bool better[] = {false, true, false, false, true};
  for (size_t i = 0; i < 5; ++i) {
    state.step = static_cast<int64_t>(i) + 1;
    EXPECT_EQ(record_evaluation(losses[i], state), better[i]) << i;
  }
  EXPECT_EQ(state.best_step, 5);
  EXPECT_EQ(state.best_eval_loss, 1);
  EXPECT_EQ(state.evals_since_best, 0);
}

TEST(Milestones, ARunEndsAfterSoManyEvaluationsWithoutABetterOne) {
  RunState state;
  state.step = 1;
  record_evaluation(2, state);
  state.step = 2;
  record_evaluation(2, state);
  EXPECT_FALSE(early_stop_after(state, 2, 10));
  state.step = 3;
  record_evaluation(3, state);
  EXPECT_FALSE(early_stop_after(state, 0, 10)) << "no patience is given";
  EXPECT_FALSE(early_stop_after(state, 2, 3)) << "it is over anyhow";
  const auto stop = early_stop_after(state, 2, 10);
  ASSERT_TRUE(stop);
  EXPECT_EQ(stop->evaluations, 2);
  EXPECT_EQ(stop->best_step, 1);
  EXPECT_EQ(stop->best_eval_loss, 2);
}

}  // namespace
}  // namespace headroom
