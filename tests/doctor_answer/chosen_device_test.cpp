// Devices that a program chooses, graphs that go through it whole, and precisions that a post compares. Sentences of
// our own.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "doctor/answer/answer.h"

namespace headroom::doctor {
namespace {

Answer reply_to(const std::string& text) {
  Request request;
  request.inputs = {"-"};
  std::istringstream stream(text + "\n");
  return answer(request, stream);
}

// Whether one of the first `count` remedies contains these words.
bool begins_with(const Answer& a, const std::string& words, size_t count = 3) {
  const std::vector<Remedy>& remedies = a.report.diagnosis.remedies;
  for (size_t i = 0; i < std::min(count, remedies.size()); ++i)
    if (remedies[i].set.find(words) != std::string::npos) return true;
  return false;
}
bool contains(const Answer& a, const std::string& words) {
  return begins_with(a, words, a.report.diagnosis.remedies.size());
}
bool diagnosed(const Answer& a, const std::string& name) {
  for (const Cause& each : a.report.diagnosis.causes)
    if (each.name == name) return true;
  return false;
}

TEST(ChosenDevice, AnotherOneThanWasMeant) {
  for (const char* words :
       {"I set os.environ[\"CUDA_VISIBLE_DEVICES\"] = \"3\" in my notebook. CUDA error: out of memory, it still uses "
        "GPU 0 where my colleague trains",
        "How do I specify which gpu the training takes? CUDA out of memory, but I have a free gpu",
        "代码里指定了gpu 2，显存不足，还是用0号卡，2号卡空闲"})
    EXPECT_TRUE(begins_with(reply_to(words), "CUDA_VISIBLE_DEVICES=<number in nvidia-smi>", 1)) << words;
}

TEST(ChosenDevice, ACommandChoosesNoOther) {
  const Answer a = reply_to(
      "CUDA_VISIBLE_DEVICES=1 python train.py --batch_size 16\nRuntimeError: CUDA out of memory. Tried to allocate "
      "20.00 MiB (GPU 0; 10.76 GiB total capacity; 9.70 GiB already allocated; 12.00 MiB free; 9.80 GiB reserved in "
      "total by PyTorch)");
  EXPECT_FALSE(diagnosed(a, "another_device_than_meant"));
}

TEST(ChosenDevice, DataParallelIsSeenByItsWarning) {
  const Answer a = reply_to(
      "I fine-tune on one of my two cards, the other one is taken too\n/x/torch/nn/parallel/_functions.py:61: "
      "UserWarning: Was asked to gather along dimension 0, but all input tensors were scalars\nCUDA out of memory");
  EXPECT_TRUE(begins_with(a, "CUDA_VISIBLE_DEVICES=0 before the command", 1));
}

TEST(ChosenDevice, MoreDevicesThanWentWell) {
  const Answer a = reply_to("training goes well on four cards. When using more gpus I get CUDA out of memory");
  EXPECT_TRUE(begins_with(a, "torch.cuda.set_device(local_rank)"));
  EXPECT_TRUE(begins_with(a, "a newer release"));
}

TEST(ChosenDevice, AServerOfASmallModelMayShareItsDevice) {
  const Answer a = reply_to("vllm serve my-2b-model on an H100 80GB ends with CUDA out of memory");
  EXPECT_TRUE(begins_with(a, "nvidia-smi"));
  EXPECT_FALSE(diagnosed(reply_to("vllm serve my-40b-model on an H100 80GB ends with CUDA out of memory"),
                         "served_model_far_smaller"));
}

TEST(OtherPrograms, SglangHasNoOptionsOfVllm) {
  const Answer a = reply_to("sglang with a llava model: CUDA out of memory at its start");
  EXPECT_FALSE(contains(a, "--enforce-eager"));
  EXPECT_FALSE(contains(a, "--limit-mm-per-prompt"));
  EXPECT_TRUE(contains(a, "--mem-fraction-static"));
}

TEST(OtherPrograms, AGraphIsTakenInParts) {
  const Answer a = reply_to(
      "my GNN: out = model(data.x, data.edge_index); loss.backward(); optimizer.step() on 200k nodes\nCUDA out of "
      "memory");
  EXPECT_TRUE(begins_with(a, "NeighborLoader", 1));
  EXPECT_FALSE(diagnosed(a, "states_at_the_first_step")) << "a line of code is not a frame";
}

TEST(OtherPrograms, DarknetPredictsWithoutSubdivisions) {
  const Answer a = reply_to("./darknet detector test my.data my.cfg my.weights a.jpg\n 0 CUDA Error: out of memory");
  EXPECT_TRUE(begins_with(a, "nvidia-smi", 1));
  EXPECT_TRUE(begins_with(a, "batch=1 and subdivisions=1"));
  EXPECT_FALSE(contains(a, "subdivisions=<double>"));
}

TEST(OtherPrograms, PosesByColmapAreNotItsStereo) {
  EXPECT_FALSE(contains(reply_to("my gaussian splats from a colmap dataset: CUDA out of memory"), "PatchMatchStereo"));
  EXPECT_TRUE(contains(reply_to("colmap patch_match_stereo: CUDA out of memory"), "PatchMatchStereo"));
}

TEST(OtherPrograms, TheEngineSaysWhichLengthItPlansFor) {
  const Answer a = reply_to(
      "from vllm import LLM\n# max_seq_len=2048,\nllm = LLM(model=\"m\", gpu_memory_utilization=.6)\nINFO "
      "llm_engine.py] Initializing an LLM engine with config: model='m', max_seq_len=131072)\nCUDA out of memory");
  EXPECT_TRUE(begins_with(a, "--max-model-len 16384", 1));
  EXPECT_FALSE(contains(a, "--gpu-memory-utilization 0.8")) << "the post has less";
}

TEST(Told, SixteenBitsThatTakeMore) {
  const Answer a = reply_to("With fp32 and 4 rows the training works. With --fp16 I get CUDA out of memory");
  EXPECT_TRUE(begins_with(a, "without the 16 bits, as it ran", 1));
  EXPECT_FALSE(diagnosed(reply_to("With fp16 the training works. With fp32 it is CUDA out of memory"),
                         "sixteen_bits_take_more"));
}

TEST(Told, ABatchOfOneInWords) {
  for (const char* words : {"I train volumes, CUDA out of memory, the batch size is one",
                            "the training is out of memory on the GPU with a batch size as small as just 1"}) {
    const Answer a = reply_to(words);
    EXPECT_FALSE(begins_with(a, "<half>")) << words;
    EXPECT_TRUE(begins_with(a, "smaller inputs", 1)) << words;
    EXPECT_TRUE(begins_with(a, "autocast")) << words;
  }
}

TEST(Told, ATrainersOwnLoopKeepsNothing) {
  const Answer a =
      reply_to("llamafactory-cli train x.yaml: after a few hours CUDA out of memory, memory keeps increasing");
  EXPECT_FALSE(begins_with(a, "loss.item()"));
  EXPECT_TRUE(begins_with(a, "cutoff_len") || begins_with(a, "per_device_train_batch_size"));
}

TEST(Told, AHostedNotebookHasNoSwap) {
  const Answer a = reply_to(
      "Your session crashed after using all available RAM, in colab, while loading the model with from_pretrained");
  EXPECT_FALSE(contains(a, "swap as large"));
  EXPECT_TRUE(begins_with(a, "low_cpu_mem_usage"));
}

TEST(Told, ABuildOfDockerIsNoPod) {
  const Answer a = reply_to(
      "#9 40.1 Solving environment: Killed\nfailed to solve: executor failed running [/bin/sh -c conda install x]: "
      "exit "
      "code: 137");
  EXPECT_TRUE(begins_with(a, "Docker Desktop", 1));
  EXPECT_FALSE(contains(a, "resources.limits"));
  EXPECT_FALSE(contains(a, "num_workers"));
}

}  // namespace
}  // namespace headroom::doctor
