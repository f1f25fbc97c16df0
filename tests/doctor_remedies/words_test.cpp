// Stages, models and devices as people write them.
#include <gtest/gtest.h>

#include "doctor/remedies/model_words.h"
#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

TEST(Words, StandAlone) {
  EXPECT_NE(find_word("goes oom at step 3", "oom$"), std::string_view::npos);
  EXPECT_EQ(find_word("bloom in the room", "oom$"), std::string_view::npos);
  EXPECT_EQ(find_word("retrieval", "eval"), std::string_view::npos);
  EXPECT_EQ(any_word("an evaluation", "saving|evaluat"), "evaluat");
}

TEST(Words, OfAStageNeedAFailureInTheirSentence) {
  const auto evaluation = [](const char* log) { return !told_stage(log, ToldStage::evaluation).empty(); };
  EXPECT_TRUE(evaluation("it runs out of memory in the validation"));
  EXPECT_TRUE(evaluation("training is fine, but the evaluation goes oom"));
  EXPECT_FALSE(evaluation("it runs out of memory. then i wrote an evaluation"));
  EXPECT_FALSE(evaluation("oom in the first step, the evaluation before it works"));
  EXPECT_FALSE(told_stage("oom while saving the model", ToldStage::saving).empty());
  EXPECT_TRUE(told_stage("oom in spite of memory saving", ToldStage::saving).empty());
  EXPECT_FALSE(told_stage("oom when i resume the run", ToldStage::resuming).empty());
}

TEST(Words, OfStepsThatWentWell) {
  EXPECT_EQ(told_after_epochs("oom after 12 epochs"), "after 12 epoch");
  EXPECT_EQ(told_after_epochs("crashes after a few steps"), "after a few steps");
  EXPECT_TRUE(told_after_epochs("after epoch 3 i slept").empty());
}

TEST(Words, NameAModel) {
  EXPECT_EQ(model_in_words("llama-2-13b-hf")->parameters, 13e9);
  EXPECT_EQ(model_in_words("llama-2-13b-hf")->bits, 16);
  EXPECT_EQ(model_in_words("qwen2.5-72b-instruct-awq")->bits, 4);
  EXPECT_NEAR(model_in_words("mixtral-8x7b")->parameters, 47e9, 1e9);
  EXPECT_EQ(model_in_words("7b and 70b")->parameters, 7e9) << "the least of them";
  EXPECT_FALSE(model_in_words("24gb, 4bit, 0x1b, h5b"));
}

TEST(Words, NameADevice) {
  ASSERT_TRUE(gpu_in_words("on my rtx 4090"));
  EXPECT_EQ(gpu_in_words("on my rtx 4090")->name, "RTX-4090");
  EXPECT_EQ(gpu_in_words("a 3090 at home")->name, "RTX-3090");
  EXPECT_FALSE(gpu_in_words("8x4090"));
  EXPECT_FALSE(gpu_in_words("4 3090"));
  EXPECT_FALSE(gpu_in_words("step 14090"));
}

}  // namespace
}  // namespace headroom::doctor
