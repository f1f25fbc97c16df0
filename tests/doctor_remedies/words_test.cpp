// Stages, models and devices as people write them.
#include <gtest/gtest.h>

#include "doctor/remedies/model_words.h"
#include "doctor/remedies/told_growth.h"
#include "doctor/remedies/told_stage.h"
#include "doctor/remedies/tried.h"

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

TEST(Words, OfAnEpochThatFailed) {
  EXPECT_EQ(told_after_epochs("the problem arises when the epoch goes to 60~70"), "epoch goes to 60");
  EXPECT_EQ(told_after_epochs("it crashes at epoch 12"), "epoch 12");
  EXPECT_EQ(told_after_epochs("oom in the 30th epoch"), "30th epoch");
  EXPECT_EQ(told_after_epochs("oom after about 5-8 epochs"), "after about 5-8 epoch");
  EXPECT_EQ(told_after_epochs("到第20个epoch就爆显存"), "20个epoch");
  EXPECT_TRUE(told_after_epochs("oom at epoch 1, num_epochs=100").empty());
  EXPECT_TRUE(told_after_epochs("after the first epoch there is no new peak").empty());
  EXPECT_TRUE(only_first_steps("after a few iterations"));
  EXPECT_TRUE(only_first_steps("after 5 step"));
  EXPECT_FALSE(only_first_steps("after 5000 step"));
  EXPECT_FALSE(only_first_steps("after 5 epoch"));
}

TEST(Words, ThatAreDenied) {
  EXPECT_TRUE(affirmed_word("it is not evaluation", "evaluat").empty());
  EXPECT_TRUE(affirmed_word("not during the evaluation", "evaluat").empty());
  EXPECT_TRUE(affirmed_word("instead of evaluation", "evaluat").empty());
  EXPECT_TRUE(affirmed_word("不是在推理", "推理").empty());
  EXPECT_TRUE(affirmed_word("推論ではなく", "推論").empty());
  EXPECT_TRUE(affirmed_word("i do not use dataparallel", "dataparallel").empty());
  EXPECT_FALSE(affirmed_word("i can not use dataparallel", "dataparallel").empty());
  EXPECT_FALSE(affirmed_word("it does not train", "train").empty()) << "it fails";
  EXPECT_FALSE(affirmed_word("not here. evaluation", "evaluat").empty());
  EXPECT_FALSE(affirmed_word("not evaluation but the evaluation of the test set", "test set|evaluat").empty());
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

TEST(Words, NameTheStageInThreeLanguages) {
  const auto stage = [](const char* log, ToldStage each) { return !told_stage(log, each).empty(); };
  EXPECT_TRUE(stage("保存checkpoint的时候报显存不足", ToldStage::saving));
  EXPECT_TRUE(stage("训练到save_steps保存checkpoint的时候显存不足", ToldStage::saving));
  EXPECT_TRUE(stage("モデルをマージするとメモリが足りずに落ちる", ToldStage::merging));
  EXPECT_TRUE(stage("the conversion to gguf is killed", ToldStage::converting));
  EXPECT_TRUE(stage("awq量化的时候爆显存", ToldStage::quantising));
  EXPECT_FALSE(stage("4bit量化微调爆显存", ToldStage::quantising)) << "a training";
  EXPECT_TRUE(stage("编译flash-attention的时候内存爆满", ToldStage::building));
  EXPECT_FALSE(stage("torch.compile runs out of memory", ToldStage::building));
  EXPECT_TRUE(stage("after loading a checkpoint to continue it goes out of memory", ToldStage::resuming));
  EXPECT_FALSE(stage("killed while loading checkpoint shards", ToldStage::resuming));
}

TEST(Words, TellWhetherItTrains) {
  EXPECT_EQ(told_task("fine-tuning on my data is out of memory"), ToldTask::training);
  EXPECT_EQ(told_task("a pretrained model, the chat is out of memory"), ToldTask::prediction);
  EXPECT_EQ(told_task("训练好的模型推理时显存不足"), ToldTask::prediction);
  EXPECT_EQ(told_task("the training works, inference runs out of memory"), ToldTask::prediction);
  EXPECT_EQ(told_task("out of memory"), ToldTask::unknown);
  EXPECT_EQ(told_task("merging the lora of my training is out of memory"), ToldTask::prediction);
}

TEST(Words, TellWhoEndedIt) {
  EXPECT_FALSE(told_killed("the process got killed").empty());
  EXPECT_FALSE(told_killed("进程被系统kill了").empty());
  EXPECT_TRUE(told_killed("i killed the other process").empty());
}

TEST(Words, NameTheSizeOfADevice) {
  EXPECT_EQ(device_in_words("24g显存"), 24 * 0x1p30);
  EXPECT_EQ(device_in_words("a 12 gb gpu and 64 gb ram"), 12 * 0x1p30);
  EXPECT_FALSE(device_in_words("64 gb ram, a 30 gb file"));
  EXPECT_TRUE(several_devices_in_words("8卡训练"));
  EXPECT_TRUE(several_devices_in_words("4 x a100"));
  EXPECT_FALSE(several_devices_in_words("单卡 18卡顿"));
}

TEST(Words, TellWhatWasTriedInVain) {
  EXPECT_TRUE(tried_in_vain("even with gradient_checkpointing it is out of memory", "checkpointing"));
  EXPECT_TRUE(tried_in_vain("使用torch.cuda.empty_cache()不起作用", "empty-cache"));
  EXPECT_FALSE(tried_in_vain("i set num_workers=4. it is still killed", "fewer-workers"));
  EXPECT_FALSE(tried_in_vain("even with a batch of 1", "checkpointing"));
  EXPECT_TRUE(tried_in_vain("max_seq_length is 32 now.\nstill oom", "sequence-length")) << "the next sentence says so";
  EXPECT_TRUE(tried_in_vain("no matter which num_workers i take", "fewer-workers"));
  EXPECT_TRUE(tried_in_vain("the paging file is unlimited, no luck", "more-swap"));
}

}  // namespace
}  // namespace headroom::doctor
