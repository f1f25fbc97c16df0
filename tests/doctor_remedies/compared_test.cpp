// What a post compares: a smaller model with a larger one, an older version with a newer one; and growth that it tells
// of or only supposes.
#include "doctor/remedies/told_growth.h"
#include "incidents.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;

Diagnosis of_words(const std::string& log, const std::string& format = "torch_no_numbers") {
  Case incident;
  Message message;
  message.framework = "pytorch-cuda";
  message.format = format;
  message.phase = "unknown";
  incident.messages.push_back(message);
  incident.log_text = log;
  return diagnose(incident);
}

TEST(Compared, AnOlderVersionThatHelpedIsGoneBackTo) {
  for (const char* log :
       {"cuda out of memory since 2.3. downgrading to 2.2 fixes it\n",
        "cuda out of memory in version 1.8 (reverted to 1.7 and it works)\n", "显存不足, 回退到旧版就正常了\n"})
    EXPECT_EQ(of_words(log).remedies[0].name, "other-version") << log;
  for (const char* log :
       {"cuda out of memory, downgrading to 2.2 does not help\n",
        "cuda out of memory\nyou can downgrade to 2.2, it works\n", "cuda out of memory. would downgrading work?\n",
        "cuda out of memory\n> downgrading to 2.2 fixed it for me\n"})
    EXPECT_EQ(cause_of(of_words(log), "worked_before_an_upgrade"), nullptr) << log;
}

TEST(Compared, OnlyTheLargerModelFails) {
  const Diagnosis trained = of_words("i fine-tune llama. 7b works fine, but 13b ends in cuda out of memory\n");
  ASSERT_NE(cause_of(trained, "only_the_larger_model_fails"), nullptr);
  EXPECT_EQ(trained.remedies[0].name, "shard");
  EXPECT_THAT(cause_of(trained, "only_the_larger_model_fails")->evidence, HasSubstr("7b goes well and 13b fails"));
  const Diagnosis asked = of_words("chat with a llm: the 14b model gets out of memory. 7b can run without problem\n");
  ASSERT_NE(cause_of(asked, "only_the_larger_model_does_not_run"), nullptr);
  EXPECT_EQ(asked.remedies[0].name, "quantized-model");
  for (const char* log : {"i fine-tune a 13b model, out of memory. 13b works with lora\n",
                          "i fine-tune llama: 7b fails with out of memory, 13b works in 4 bits\n",
                          "i fine-tune a 13b model, cuda out of memory\n"})
    EXPECT_EQ(cause_of(of_words(log), "only_the_larger_model_fails"), nullptr) << log;
}

TEST(Compared, ALeakThatIsOnlySupposedIsNoGrowth) {
  EXPECT_EQ(told_growing("i get out of memory, i think there might be a memory leak"), "");
  EXPECT_EQ(told_growing("显存不足, 可能是 memory leak"), "");
  EXPECT_NE(told_growing("maybe a memory leak: it uses more with every step"), "");
  EXPECT_NE(told_growing("there is a memory leak in this layer"), "");
  EXPECT_NE(told_growing("gpu memory creeps up until it fails"), "");
}

TEST(Compared, WhatGrowsInAnEvaluationIsItsOutputs) {
  const Diagnosis diagnosis =
      of_words("a network is trained with pytorch. out of memory during evaluation: gpu memory keeps growing there\n");
  ASSERT_NE(cause_of(diagnosis, "outputs_of_the_evaluation_kept"), nullptr);
  EXPECT_EQ(diagnosis.remedies[0].name, "eval-accumulation");
  EXPECT_EQ(cause_of(of_words("out of memory in training with pytorch, gpu memory keeps growing\n"),
                     "outputs_of_the_evaluation_kept"),
            nullptr);
}

TEST(Compared, TransformersOwnScriptsEvaluateWithATrainer) {
  const Diagnosis diagnosis = of_words("out of memory during evaluation in run_summarization.py, t5 is trained\n");
  EXPECT_NE(cause_of(diagnosis, "batch_of_the_evaluation"), nullptr);
  EXPECT_EQ(diagnosis.remedies[0].name, "eval-batch");
}

// Everything that a script of diffusers is told is an option of it.
TEST(Compared, AScriptOfADiffusionModelHasNoTokenizerToCut) {
  Case incident;
  incident.job = training_job(System::hf_trainer, 1);
  incident.job->model.clear();
  incident.log_text = "train_text_to_image_lora.py --train_batch_size=1 --gradient_checkpointing: cuda out of memory\n";
  incident.messages.push_back(cuda_message(0.3, 0.1, 22, 0.5, 23.6));
  const Diagnosis diagnosis = diagnose(incident);
  ASSERT_NE(cause_of(diagnosis, "diffusion_training"), nullptr);
  EXPECT_EQ(remedy_of(diagnosis, "sequence-length"), nullptr);
  EXPECT_EQ(remedy_of(diagnosis, "compile"), nullptr);
  EXPECT_THAT(expect_remedy(diagnosis, "optimizer-8bit").set, HasSubstr("--use_8bit_adam"));
}

Diagnosis of_tensorflow(const std::string& log) {
  Case incident;
  Message message;
  message.framework = "tensorflow";
  message.format = "tf_oom";
  message.phase = "unknown";
  incident.messages.push_back(message);
  incident.log_text = log;
  return diagnose(incident);
}
size_t place_of(const Diagnosis& diagnosis, std::string_view name) {
  size_t at = 0;
  while (at < diagnosis.remedies.size() && diagnosis.remedies[at].name != name) ++at;
  return at;
}

// Whether it trains or predicts, a program of TensorFlow has little beside its batch.
TEST(Compared, TheBatchOfTensorflowComesEarly) {
  for (const char* log :
       {"keras, out of memory in model.predict of my segmentation\n", "oom when allocating tensor, inference graph\n",
        "resource exhausted: oom when allocating tensor. keras training of a u-net\n"}) {
    const Diagnosis diagnosis = of_tensorflow(log);
    EXPECT_LT(place_of(diagnosis, "micro-batch"), 2u) << log;
    EXPECT_THAT(expect_remedy(diagnosis, "micro-batch").set, HasSubstr("model.fit(")) << log;
    for (const Remedy& remedy : diagnosis.remedies) EXPECT_EQ(remedy.set.find("DataLoader"), std::string::npos) << log;
  }
}

TEST(Compared, ARowIsLeftOfTwo) {
  const Diagnosis two = of_tensorflow("keras runs out of memory when training, even with batch_size=2\n");
  EXPECT_LT(place_of(two, "micro-batch"), 2u);
  EXPECT_THAT(expect_remedy(two, "micro-batch").set, HasSubstr("batch_size=1)"));
  const Diagnosis one = of_tensorflow("keras runs out of memory when training, even with batch_size=1\n");
  EXPECT_GE(place_of(one, "micro-batch"), 2u);
  const Diagnosis torch = of_words("my network trains with batch_size=2 and gets cuda out of memory\n");
  EXPECT_THAT(expect_remedy(torch, "micro-batch").set, HasSubstr("batch_size=1)"));
  const Diagnosis many = of_words("my network trains with batch_size=32 and gets cuda out of memory\n");
  EXPECT_THAT(expect_remedy(many, "micro-batch").set, HasSubstr("half"));
}

TEST(Compared, MaskRcnnOfKerasHasItsOwnBatch) {
  const Diagnosis diagnosis = of_tensorflow("keras, node mrcnn_class_conv1: oom when allocating tensor\n");
  EXPECT_THAT(diagnosis.remedies[0].set, HasSubstr("IMAGES_PER_GPU = 1"));
  EXPECT_THAT(diagnosis.remedies[1].set, HasSubstr("IMAGE_MAX_DIM"));
  const Diagnosis one = of_tensorflow("mask_rcnn, images_per_gpu = 1: oom when allocating tensor\n");
  EXPECT_EQ(remedy_of(one, "micro-batch"), nullptr);
}

TEST(Compared, WhatIsInUseIsNotOfferedFirst) {
  const Diagnosis used =
      of_words("inference of flow on photographs: cuda out of memory. i use torch.no_grad() around the model\n");
  EXPECT_GE(place_of(used, "no-grad"), 3u);
  const Diagnosis asked = of_words("inference of flow on photographs: cuda out of memory. should i use no_grad?\n");
  EXPECT_LT(place_of(asked, "no-grad"), 3u);
}

// torch.compile came with PyTorch 2.
TEST(Compared, AMessageOfPyTorch1IsNotCompiled) {
  for (const char* format : {"torch1_cached", "torch1_reserved"})
    EXPECT_EQ(remedy_of(of_words("out of memory, bert is trained\n", format), "compile"), nullptr) << format;
  Case job = case_of(training_job(System::hf_trainer, 4, 2048), "a100-40gb");
  job.messages.push_back(cuda_message(0.3, 0.1, 37, 0.5, 39));
  EXPECT_NE(remedy_of(diagnose(job), "compile"), nullptr);
  job.messages[0].format = "torch1_cached";
  EXPECT_EQ(remedy_of(diagnose(job), "compile"), nullptr);
}

}  // namespace
}  // namespace headroom::doctor
