// Facts that a post tells in its own words and that decide which advice makes sense: what was tried, which of two
// stages its title names, whose message it quotes, which memory it means.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "doctor/answer/answer.h"
#include "doctor/output/screen.h"

namespace headroom::doctor {
namespace {

Answer told(const std::string& text) {
  Request request;
  request.inputs = {"-"};
  std::istringstream stream(text + "\n");
  return answer(request, stream);
}
std::vector<std::string> first_three(const std::string& text) {
  std::vector<std::string> names;
  for (const Remedy& remedy : told(text).report.diagnosis.remedies)
    if (names.size() < 3) names.push_back(remedy.name);
  return names;
}
bool proposes(const std::string& text, const std::string& technique) {
  const std::vector<std::string> names = first_three(text);
  return std::find(names.begin(), names.end(), technique) != names.end();
}

TEST(ToldFacts, WhatSomebodyDidIsNotProposedFirst) {
  const std::string size = "predict.py on a large photograph: CUDA out of memory. I also tried a smaller input size.";
  EXPECT_FALSE(proposes(size, "input-size"));
  const std::string batch = "训练唇语网络显存不足,即使把batch_size改小到10也无法解决";
  EXPECT_NE(first_three(batch).at(0), "micro-batch");
  const std::string host = "The data loader is killed, host memory is full, although I gave it --shm-size and more RAM";
  EXPECT_NE(first_three(host).at(0), "host-memory");
}

TEST(ToldFacts, AQuestionOrASuccessIsNotAFailedAttempt) {
  EXPECT_TRUE(proposes("predict.py on a large photograph: CUDA out of memory. Should I resize it?", "input-size"));
  EXPECT_TRUE(
      proposes("predict.py on a photograph: CUDA out of memory. I tried a smaller input size and it works, can "
               "I keep the large one?",
               "input-size"));
}

TEST(ToldFacts, TheTitleNamesTheStage) {
  const std::string text = screen(told("CUDA error: out of memory at inference time\n"
                                       "Training runs out of memory with a batch size of 16 and works with 8.\n"
                                       "The same error comes when I infer one image of 1025 x 2049.")
                                      .report);
  EXPECT_EQ(text.find("optimizer.step"), std::string::npos) << text;
}

TEST(ToldFacts, AHintOfTensorflowIsTensorflows) {
  const std::string text =
      headline(told("Hint: If you want to see a list of allocated tensors when OOM happens, add "
                    "report_tensor_allocations_upon_oom to RunOptions for current allocation info.")
                   .report);
  EXPECT_NE(text.find("tensorflow"), std::string::npos) << text;
}

TEST(ToldFacts, ProcessesThatDiedAreOfTheHost) {
  EXPECT_TRUE(
      told("RuntimeError: One of the subprocesses has abruptly died during map operation").report.diagnosis.host);
}

TEST(ToldFacts, AComparisonIsNotGrowth) {
  const std::string text = screen(
      told("OOM of a video model. With the other strategy GPU memory usage increases a lot, 62 GB become 80.").report);
  EXPECT_EQ(text.find("by the post memory grows"), std::string::npos) << text;
  EXPECT_EQ(text.find("longer or larger samples came"), std::string::npos) << text;
}

TEST(ToldFacts, ThePixelsThatAPostNamesComeFirst) {
  EXPECT_EQ(first_three("my video network runs out of GPU memory, the resolution is 1080p").at(0), "input-size");
}

}  // namespace
}  // namespace headroom::doctor
