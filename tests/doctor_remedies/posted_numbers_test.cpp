// Numbers in advice, compared with those of the post.
#include "doctor/remedies/posted_numbers.h"

#include <gtest/gtest.h>

#include "doctor/remedies/program_words.h"

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
