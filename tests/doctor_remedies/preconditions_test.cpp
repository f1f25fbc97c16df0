// What each remedy presupposes: a record per technique, and what follows where the inputs deny it or leave it open.
#include "doctor/remedies/preconditions.h"

#include "doctor/remedies/technique.h"
#include "incidents.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Diagnosis with_log(Message message, const std::string& log) {
  Case incident;
  incident.messages.push_back(std::move(message));
  incident.log_text = log;
  return diagnose(incident);
}
Message full_device(const std::string& phase = "unknown") {
  Message message = cuda_message(0.3, 0.1, 9, 0.2, 11);
  message.phase = phase;
  return message;
}
Message full_host() {
  Message message;
  message.framework = "host";
  message.phase = "host_ram";
  message.hints = {"host_ram"};
  return message;
}

TEST(Preconditions, EveryTechniqueHasARecord) {
  for (const Technique& technique : all_techniques()) EXPECT_NO_THROW(presupposed_by(technique.name)) << technique.name;
}

TEST(Preconditions, TheTextOfARemedySaysMoreThanItsTechnique) {
  Remedy remedy;
  remedy.name = "micro-batch";
  remedy.set = "a smaller batch_size: half of it";
  EXPECT_TRUE(holds_fact(presupposed_by(remedy), Fact::several_rows));
  EXPECT_FALSE(holds_fact(presupposed_by(remedy), Fact::pytorch));
  remedy.set = "optimizer.step() every 8 batches";
  EXPECT_TRUE(holds_fact(presupposed_by(remedy), Fact::pytorch));
}

TEST(Preconditions, NoStepIsMadeSmallerWhereSavingFailed) {
  const Diagnosis diagnosis = with_log(full_device("checkpoint_save"), "training of a network, torch.save\n");
  EXPECT_EQ(remedy_of(diagnosis, "micro-batch"), nullptr);
  EXPECT_THAT(refusal_of(diagnosis, "micro-batch"), HasSubstr("while it saved"));
}

TEST(Preconditions, NothingIsKeptForABackwardPassInABackwardPass) {
  const Diagnosis diagnosis = with_log(full_device("backward"), "a network\n");
  EXPECT_EQ(remedy_of(diagnosis, "no-grad"), nullptr);
}

TEST(Preconditions, AServerIsNotTrained) {
  for (const Remedy& remedy : with_log(full_device(), "vllm serve a model\n").remedies)
    EXPECT_FALSE(holds_fact(presupposed_by(remedy.name), Fact::training)) << remedy.name;
}

TEST(Preconditions, WhatNothingShowsIsSaidWithItsCondition) {
  const Diagnosis diagnosis = with_log(cuda_message(0.5, 0.3, 35, 1, 39), "it is full\n");
  EXPECT_THAT(expect_remedy(diagnosis, "checkpointing").set, StartsWith("in training: "));
  const Diagnosis trains = with_log(cuda_message(0.5, 0.3, 35, 1, 39), "it trains for an epoch\n");
  EXPECT_THAT(expect_remedy(trains, "checkpointing").set, StartsWith("model.gradient_checkpointing_enable"));
}

TEST(Preconditions, ImagesAreNotCutToALength) {
  Message message = full_device();
  const std::string video = "deepspeed training of a video model at 720p, 12 steps\n| 12/400 [\n";
  for (const Remedy& remedy : with_log(message, video).remedies) {
    EXPECT_EQ(remedy.set.find("max_length"), std::string::npos) << remedy.set;
    EXPECT_EQ(remedy.set.find("of like length"), std::string::npos) << remedy.set;
  }
}

TEST(Preconditions, TextsAreNotCropped) {
  const Diagnosis diagnosis = with_log(cuda_message(30, 1, 9, 0.1, 24), "a llama is fine-tuned\n");
  ASSERT_FALSE(diagnosis.remedies.empty());
  EXPECT_EQ(diagnosis.remedies[0].set.find("crop"), std::string::npos) << diagnosis.remedies[0].set;
  EXPECT_THAT(diagnosis.remedies[0].set, HasSubstr("shorter texts"));
}

TEST(Preconditions, SwapDoesNotHelpWhereSomebodyElseRunsTheMachine) {
  for (const char* log : {"a colab notebook crashed\n", "the pod was oomkilled\n"})
    EXPECT_EQ(remedy_of(with_log(full_host(), log), "more-swap"), nullptr) << log;
}

TEST(Preconditions, AShareOfTheDeviceHoldsTheWeights) {
  const std::string log = "vllm serve qwen2-7b --gpu-memory-utilization 0.3\n";
  for (const Remedy& remedy : with_log(cuda_message(0.5, 0.3, 22, 1, 24), log).remedies)
    EXPECT_EQ(remedy.set.find("--gpu-memory-utilization 0.2"), std::string::npos) << remedy.set;
}

}  // namespace
}  // namespace headroom::doctor
