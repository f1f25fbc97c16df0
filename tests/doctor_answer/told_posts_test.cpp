// Posts without an error message, a stack or a configuration: what their sentences say.
#include "careful_posts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "doctor/answer/answer.h"
#include "doctor/output/screen.h"

namespace headroom::doctor {
namespace {

Answer answer_to(std::string_view text) {
  Request request;
  request.inputs = {"-"};
  std::istringstream stream(std::string(text) + "\n");
  return answer(request, stream);
}

// Names and words of the first three remedies, in lower case.
std::string proposals(const Answer& a) {
  const std::vector<Remedy>& remedies = a.report.diagnosis.remedies;
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(3, remedies.size()); ++i)
    text += "\n" + remedies[i].name + " " + remedies[i].set;
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool any_of(const std::string& text, std::string_view words) {
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find('|'));
    if (text.find(word) != std::string::npos) return true;
    words.remove_prefix(std::min(words.size(), word.size() + 1));
  }
  return false;
}

template <size_t N>
void expect_named(const ToldPost (&posts)[N]) {
  for (const ToldPost& post : posts) {
    const Answer a = answer_to(post.text);
    const std::string text = proposals(a);
    EXPECT_TRUE(any_of(text, post.wanted)) << post.text << text;
    EXPECT_FALSE(any_of(text, post.never)) << post.text << text;
    for (const Remedy& remedy : a.report.diagnosis.remedies)
      EXPECT_FALSE(remedy.fits_alone) << post.text << ": words prove nothing, " << remedy.name;
  }
}

TEST(ToldPosts, English) { expect_named(kEnglish); }
TEST(ToldPosts, Chinese) { expect_named(kChinese); }
TEST(ToldPosts, Japanese) { expect_named(kJapanese); }

TEST(ToldPosts, WhatWasTriedAlreadyIsNotOfferedFirst) { expect_named(kTriedAlready); }
TEST(ToldPosts, WhatIsDeniedIsNotRead) { expect_named(kDenied); }

TEST(ToldPosts, TheWordForEitherMemoryIsADevicesBesideAGpu) {
  const auto host = [](const char* text) { return answer_to(text).report.diagnosis.host; };
  EXPECT_FALSE(host("单张V100上全量微调,训练到一半提示内存不足"));
  EXPECT_FALSE(host("p40显卡三张,启动api服务显示内存不足\nskip_tokenizer_init=False, tokenizer_mode=auto"));
  EXPECT_TRUE(host("单张V100上训练,内存不足,进程被kill了"));
  EXPECT_TRUE(host("训练时内存占用越来越大,dataloader num_workers=8,显卡3090"));
  EXPECT_TRUE(host("V100上训练,机器内存64G,内存不够"));
  EXPECT_TRUE(host("纯cpu识别图片,内存一直在涨,没有回收"));
}

TEST(ToldPosts, ATensorOnTheCpuIsInHostMemory) {
  const Answer a = answer_to(
      "ResourceExhaustedError: OOM when allocating tensor with shape[16,104,104,128] and type float on "
      "/job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu\nmodel.fit(x, y)");
  EXPECT_TRUE(a.report.diagnosis.host);
  EXPECT_TRUE(any_of(proposals(a), "batch_size=<half>"));
  EXPECT_FALSE(any_of(proposals(a), "allow_growth"));
}

TEST(ToldPosts, GrowthIsReadFromTheEpochOfTheFailure) {
  const auto kept = [](const char* text) { return any_of(proposals(answer_to(text)), "nothing kept over steps"); };
  EXPECT_TRUE(
      kept("Training is ok, but when the epoch goes to 45 CUDA is out of memory. With half the batch it fails at "
           "epoch 190."));
  EXPECT_TRUE(kept("OOM after 5-8 epochs of training a segmentation network on one 24 GB GPU"));
  EXPECT_TRUE(kept("训练到第30个epoch的时候爆显存了"));
  EXPECT_FALSE(kept("Training a Mask R-CNN runs out of GPU memory after a few iterations"));
  EXPECT_FALSE(
      kept("GPU memory rises in training, there is no new peak after the first epoch, out of memory it is not"));
}

TEST(ToldPosts, AKeyIsNotReadOutOfALongerOne) {
  EXPECT_FALSE(any_of(proposals(answer_to("training is killed, host memory is full\noverwrite_cache: true")), "disk"));
  EXPECT_TRUE(any_of(proposals(answer_to("yolo training is killed, host memory is full\ncache: true")), "disk"));
}

TEST(ToldPosts, SayWhoseMemoryItWas) {
  const auto headline_of = [](const char* text) { return headline(answer_to(text).report); };
  EXPECT_NE(headline_of("训练的时候内存不够,显存还有剩余").find("host"), std::string::npos);
  EXPECT_NE(headline_of("GPU内存占用越来越大，内存会溢出").find("pytorch-cuda"), std::string::npos);
  EXPECT_NE(headline_of("学習中にプロセスがkillされました").find("host"), std::string::npos);
  EXPECT_NE(headline_of("I killed the old run, CUDA out of memory is still there").find("pytorch-cuda"),
            std::string::npos);
}

TEST(ToldPosts, NothingIsSaidOfStepsWhereSavingFailed) {
  Request request;
  request.inputs = {"-"};
  request.gpu = "a100-40gb";
  request.parameters = "13B";
  std::istringstream stream(
      "Training with --fsdp on 8 GPUs is fine, saving the model always shows CUDA out of memory\n");
  const Answer a = answer(request, stream);
  EXPECT_TRUE(a.report.diagnosis.proposed_set().empty());
  EXPECT_NE(verdict(a.report).find("beside the steps"), std::string::npos) << verdict(a.report);
  EXPECT_EQ(proposals(a).find("batch"), std::string::npos);
}

TEST(ToldPosts, WhatWasTriedInVainComesLater) {
  const std::string first = proposals(
      answer_to("vllm serve qwen2-7b: CUDA out of memory, lowering gpu_memory_utilization does not help at all"));
  EXPECT_EQ(first.find("--gpu-memory-utilization"), std::string::npos) << first;
}

TEST(ToldPosts, AFullCacheWantsALargerShare) {
  const std::string text = proposals(answer_to("vLLMを起動するとKVキャッシュが足りないと言われる"));
  EXPECT_TRUE(any_of(text, "--max-model-len")) << text;
  EXPECT_FALSE(any_of(text, "utilization 0.8")) << text;
}

TEST(ToldPosts, ATrainerEvaluatesWithoutGradients) {
  const std::string text = proposals(answer_to("fine-tune Gemma 7B with Trainer, the evaluation is out of memory"));
  EXPECT_TRUE(any_of(text, "per_device_eval_batch_size")) << text;
  EXPECT_FALSE(any_of(text, "no_grad")) << text;
}

TEST(ToldPosts, WhatIsInForceIsNotOffered) {
  EXPECT_FALSE(any_of(proposals(answer_to("qwen-7b lora微调,24G显存,batch 1,开了gradient checkpointing还是爆显存")),
                      "get_peft_model|gradient_checkpointing_enable|optimizer.step"));
  EXPECT_FALSE(any_of(proposals(answer_to("Qwen-72B-Int4 加载OOM, 两张3090")), "4-bit version"));
}

TEST(ToldPosts, AnswersOfOtherProgramsHaveTheirOwnOptions) {
  EXPECT_TRUE(any_of(proposals(answer_to("caffe training: Check failed: error == cudaSuccess (2 vs. 0) out of memory")),
                     ".prototxt"));
  EXPECT_FALSE(
      any_of(proposals(answer_to("LM Studio: failed to load the model, out of memory, 8 GB VRAM")), "from_pretrained"));
  EXPECT_FALSE(any_of(proposals(answer_to("llama.cpp with a context of 32k is out of memory")), "--parallel"));
  EXPECT_TRUE(any_of(proposals(answer_to("darknet yolov4: CUDA Error: out of memory")), "subdivisions"));
  EXPECT_FALSE(
      any_of(proposals(answer_to("comfyui with --lowvram is out of memory on 4gb vram")), "no_grad|optimizer.step"));
}

}  // namespace
}  // namespace headroom::doctor
