// Missing facts that change the answer.
#include "doctor/answer/questions.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/error.h"
#include "doctor/answer/answer.h"
#include "doctor/output/screen.h"

namespace headroom::doctor {
namespace {

constexpr const char* kSmall =
    "RuntimeError: CUDA out of memory. Tried to allocate 200.00 MiB (GPU 0; 10.76 GiB total capacity; 9.61 GiB already "
    "allocated; 95.56 MiB free; 9.70 GiB reserved in total by PyTorch)\n";
constexpr const char* kDeepSpeed = "{\"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": true}}";

Report ask_with(const std::string& text, Request request = {}) {
  request.inputs = {"-"};
  std::istringstream stream(text);
  return answer(request, stream).report;
}

const Question* question_for(const Report& report, const std::string& option) {
  for (const Question& question : report.questions)
    if (question.option == option) return &question;
  return nullptr;
}

TEST(Questions, TheBatchDecidesWhereABareMessageIsAllThereIs) {
  const Report open = ask_with(kSmall);
  ASSERT_NE(question_for(open, "--micro-batch-size"), nullptr);
  EXPECT_TRUE(question_for(open, "--micro-batch-size")->first);
  EXPECT_NE(screen(open).find("GIVE  --micro-batch-size N"), std::string::npos) << screen(open);
  Request request;
  request.micro_batch = 1;
  const Report known = ask_with(kSmall, request);
  EXPECT_EQ(question_for(known, "--micro-batch-size"), nullptr);
  EXPECT_EQ(screen(known).find("GIVE"), std::string::npos);
  for (const Remedy& remedy : known.diagnosis.remedies) EXPECT_NE(remedy.name, "micro-batch") << "it is 1 already";
}

TEST(Questions, AJobWithoutAModelOrADevice) {
  const Report open = ask_with(kDeepSpeed);
  ASSERT_FALSE(open.questions.empty());
  EXPECT_NE(question_for(open, "--model"), nullptr);
  EXPECT_LE(open.questions.size(), 3u);
  Request request;
  request.model = "meta-llama/Llama-2-7b-hf";
  const Report modelled = ask_with(kDeepSpeed, request);
  EXPECT_EQ(question_for(modelled, "--model"), nullptr);
  ASSERT_NE(question_for(modelled, "--gpu"), nullptr);
  EXPECT_TRUE(question_for(modelled, "--gpu")->first);
}

TEST(Questions, ThoseThatChangeTheFirstRemedyComeFirst) {
  Request request;
  request.model = "meta-llama/Llama-2-7b-hf";
  for (const Report& report : {ask_with(kDeepSpeed, request), ask_with(kSmall), ask_with(kDeepSpeed)})
    EXPECT_TRUE(std::is_partitioned(report.questions.begin(), report.questions.end(),
                                    [](const Question& question) { return question.first; }));
}

TEST(Questions, NothingIsAskedWhereNothingDecides) {
  EXPECT_TRUE(ask_with("step 1 loss 2.3\nstep 2 loss 2.2\n").questions.empty());
  EXPECT_TRUE(ask_with("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.batch\n").questions.empty());
  EXPECT_TRUE(ask_with("INFO vllm server\nValueError: No available memory for the cache blocks. Try increasing "
                       "`gpu_memory_utilization` when initializing the engine.\n")
                  .questions.empty());
}

TEST(Questions, AnAnswerIsThatOfItsOption) {
  const Question model{"", "--model", "", false}, gpu{"", "--gpu", "", false}, torch{"", "--torch", "", false};
  const Question batch{"", "--micro-batch-size", "4", false}, length{"", "--max-seq-length", "2048", false};
  EXPECT_EQ(with_answer({}, model, "gpt2").model, "gpt2");
  EXPECT_EQ(with_answer({}, model, "7B").parameters, "7B");
  EXPECT_EQ(with_answer({}, gpu, "24GiB").gpu, "24GiB");
  EXPECT_EQ(with_answer({}, batch, "8").micro_batch, 8);
  EXPECT_EQ(with_answer({}, length, "512").sequence, 512);
  EXPECT_EQ(with_answer({}, torch, "2.6").torch, "2.6");
  EXPECT_FALSE(with_answer({}, batch, "").micro_batch.has_value()) << "an empty answer keeps what was said";
  for (const char* none : {"0", "-1", "four", "99999999999999999999"})
    EXPECT_THROW(with_answer({}, batch, none), Error) << none;
  EXPECT_THROW(with_answer({}, torch, "new"), Error);
  EXPECT_THROW(with_answer({}, model, "7x"), Error);
}

// Messages of all releases before 2.0 look alike; the version tells which allocator setting exists.
TEST(Questions, TheVersionChoosesTheAllocatorsSetting) {
  const std::string fragmented =
      "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 10.76 GiB total capacity; 5.01 GiB "
      "already "
      "allocated; 95.56 MiB free; 9.70 GiB reserved in total by PyTorch)\n";
  const auto first = [&](const char* version) {
    Request request;
    request.torch = version;
    return ask_with(fragmented, request).diagnosis.remedies.front().name;
  };
  EXPECT_EQ(first("2.6"), "expandable-segments");
  EXPECT_NE(first("1.13"), "expandable-segments");
}

}  // namespace
}  // namespace headroom::doctor
