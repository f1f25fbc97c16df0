// Numbers in advice, compared with those of the post.
#include "doctor/remedies/posted_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/remedies/model_words.h"
#include "doctor/remedies/program_words.h"
#include "doctor/remedies/told_growth.h"
#include "doctor/remedies/which_program.h"

namespace headroom::doctor {
namespace {

TEST(PostedNumbers, AreHalvedWhereTheAdviceIsNotLess) {
  EXPECT_EQ(below_posted("PARAMETER num_ctx 4096 (Modelfile)", "parameter num_ctx 3000\n"),
            "PARAMETER num_ctx 1500 (Modelfile)");
  EXPECT_EQ(
      below_posted("map(batched=True, writer_batch_size=100)", "set `writer_batch_size`, lowered it to 40, still"),
      "map(batched=True, writer_batch_size=20)");
  EXPECT_EQ(below_posted("--max-model-len 4096", "vllm serve m --max-model-len 4096"), "--max-model-len 2048");
}

TEST(PostedNumbers, StayWhereTheyAreLess) {
  EXPECT_EQ(below_posted("num_proc=4", "num_proc=16 and num_proc=8 fail"), "num_proc=4");
  EXPECT_EQ(below_posted("num_ctx 4096", "num_ctx 16384"), "num_ctx 4096");
  EXPECT_EQ(below_posted("num_workers=2", "nothing of it"), "num_workers=2");
  EXPECT_EQ(below_posted("num_ctx 4096", "num_ctx_train 512"), "num_ctx 4096") << "another name";
}

TEST(PostedNumbers, AdviceOfTheLeastValueIsNone) {
  EXPECT_EQ(below_posted("num_workers=1", "num_workers=1"), "");
  EXPECT_EQ(below_posted("streaming=True, num_proc=4", "num_proc=1"), "streaming=True, num_proc=1");
}

TEST(PostedNumbers, AreReadByName) {
  EXPECT_EQ(posted_value("micro_batch_size = 4\nbatch_size = 64", "micro_batch_size"), 4);
  EXPECT_FALSE(posted_value("train_micro_batch_size_per_gpu: 4", "micro_batch_size").has_value());
}

TEST(PostedNumbers, AreReadHoweverTheNameIsWritten) {
  EXPECT_EQ(posted_value("even if i set max-model-len to 1024 it fails", "max_model_len"), 1024);
  EXPECT_EQ(posted_value("--max-model-len=2k", "max_model_len"), 2048);
  EXPECT_EQ(posted_value("with a context length of 2048", "context_length"), 2048);
  EXPECT_EQ(posted_value("batch size 2", "batch_size"), 2);
  EXPECT_FALSE(posted_value("max_model_len_factor 3", "max_model_len").has_value());
}

TEST(PostedNumbers, ALengthTriedInVainIsNotOfferedAgain) {
  EXPECT_EQ(below_posted("--max-model-len 8192", "even if i set max-model-len to 1024"), "--max-model-len 512");
  EXPECT_EQ(below_posted("--max-model-len 8192", "max_model_len=600"), "");
}

TEST(PostedNumbers, SidesOfAnImageAreCompared) {
  const std::string advice = "a smaller image (512 x 512), one at a time";
  EXPECT_EQ(below_posted(advice, "my images are 64x64"), "");
  EXPECT_EQ(below_posted(advice, "crops of 256*256 pixels"), "a smaller image (128 x 128), one at a time");
  EXPECT_EQ(below_posted(advice, "images of 1024 x 1024"), advice);
  EXPECT_EQ(below_posted(advice, "a grid of 64x64 workers"), advice) << "no image";
  EXPECT_EQ(below_posted("--resolution 512", "--image_size 320"), "--resolution 160");
  EXPECT_EQ(posted_side("an input of 300x200"), 300);
}

TEST(PostedNumbers, SharesAreLoweredUnlessTheyAreToBeRaised) {
  EXPECT_EQ(below_posted("--gpu-memory-utilization 0.8", "i use gpu_memory_utilization 0.5"),
            "--gpu-memory-utilization 0.4");
  EXPECT_EQ(below_posted("--gpu-memory-utilization 0.95: more than now", "gpu_memory_utilization=0.9"),
            "--gpu-memory-utilization 0.95: more than now");
  EXPECT_THAT(posted_shares("gpu_memory_utilization=0.9, then gpu-memory-utilization 0.7", "gpu_memory_utilization"),
              testing::ElementsAre(0.9, 0.7));
}

TEST(PostedNumbers, DevicesThatShareTheWeights) {
  EXPECT_EQ(posted_shards("serve.py --tensor-parallel-size 8"), 8);
  EXPECT_EQ(posted_shards("serve.py -tp 4"), 4);
  EXPECT_EQ(posted_shards("--num_gpus 2"), 2);
  EXPECT_EQ(posted_shards("tensor_parallel_size=1, a link to http 8"), 1);
}

TEST(OtherPrograms, AreShownByWhatOnlyTheyWrite) {
  const auto shown = [](const std::string& log) { return std::string(other_program(log, "").name); };
  EXPECT_EQ(shown("./darknet detector train a.data b.cfg"), "darknet");
  EXPECT_EQ(shown("batch=64 subdivisions=16 in my cfg"), "darknet");
  EXPECT_EQ(shown("src/storage/./pooled_storage_manager.h: cudamalloc failed: out of memory\nmodel.fit("), "mxnet");
  EXPECT_EQ(shown("syncedmem.cpp:56] check failed: error == cudasuccess (2 vs. 0) out of memory"), "caffe");
  EXPECT_EQ(shown("context_gpu.cu:343: out of memory"), "caffe2");
  EXPECT_EQ(shown("using theano backend"), "theano");
  EXPECT_EQ(shown("th train.lua, luajit"), "torch7");
  EXPECT_EQ(shown("cuda out of memory in my script"), "");
}

TEST(OtherPrograms, ANameBesideAnotherFrameworkIsNone) {
  EXPECT_EQ(other_program("pytorch yolov3 with darknet53 weights", "").name, "");
  EXPECT_EQ(other_program("keras vgg with weights of caffe", "").name, "");
  EXPECT_EQ(other_program("frame #2 in /torch/lib/libcaffe2.so, import caffe2", "").name, "");
}

TEST(ProgramWords, ShowPyTorchByItsNameItsCodeOrItsMessage) {
  for (const char* text : {"import torch", "loss.backward() fails", "cuda out of memory", "a lora of llama"})
    EXPECT_TRUE(speaks_of_pytorch(text)) << text;
  for (const char* text : {"gpu memory is full", "cuda error: out of memory in my program"})
    EXPECT_FALSE(speaks_of_pytorch(text)) << text;
}

TEST(ModelWords, WhatIsUsedIsNoDevice) {
  EXPECT_FALSE(device_in_words("gpu memory goes from 21g to 38g").has_value());
  EXPECT_FALSE(device_in_words("it uses 30 gb on the a100").has_value());
  EXPECT_EQ(device_in_words("on a 24gb gpu"), 24 * 0x1p30);
  EXPECT_EQ(device_in_words("using a 12 gb graphics card"), 12 * 0x1p30);
}

TEST(ToldGrowth, SpeaksOfMemory) {
  EXPECT_NE(told_growing("the gpu memory keeps increasing with every epoch"), "");
  EXPECT_NE(told_growing("i watch the vram. it slowly grows until the end"), "");
  EXPECT_EQ(told_growing("the accuracy increases every epoch. then it stops"), "");
  EXPECT_EQ(told_growing("gpu memory does not grow, it stays constant"), "");
}

TEST(ProgramWords, NameAFrameworkOnlyWithoutPyTorch) {
  EXPECT_EQ(named_framework("import paddle\n", ""), "paddle");
  EXPECT_EQ(named_framework("a keras model", ""), "tensorflow");
  EXPECT_EQ(named_framework("keras beside pytorch", ""), "");
  EXPECT_EQ(named_framework("cuda out of memory", ""), "");
}

TEST(ProgramWords, ShowAnInferenceOnlyWithoutATraining) {
  const auto shows = [](const std::string& log) { return !plain_inference(log, "", read_story(log)).empty(); };
  EXPECT_TRUE(shows("python web_demo.py ends with cuda out of memory"));
  EXPECT_TRUE(shows("error occurred when executing ksampler: allocation on device 0"));
  EXPECT_FALSE(shows("i train a model and look at it with web_demo.py, out of memory while training"));
  EXPECT_FALSE(shows("cuda out of memory"));
}

TEST(ProgramWords, PrintAnOldPyTorch) {
  EXPECT_TRUE(prints_torch_1("environment: pytorch-1.13, python 3.8"));
  EXPECT_FALSE(prints_torch_1("pytorch 1.13 fails, pytorch 2.0 does not"));
  EXPECT_FALSE(prints_torch_1("torch 2.1"));
}

}  // namespace
}  // namespace headroom::doctor
