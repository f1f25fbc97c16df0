// The inputs determine the answer.
#include "doctor/answer/answer.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/error.h"
#include "doctor/answer/ask_again.h"
#include "doctor/answer/job_model.h"
#include "doctor/output/screen.h"

namespace headroom::doctor {
namespace {

constexpr const char* kMessage =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB "
    "of "
    "which 1.14 GiB is free. Including non-PyTorch memory, this process has 14.62 GiB memory in use. Of the allocated "
    "memory 13.94 GiB is allocated by PyTorch, and 318.06 MiB is reserved by PyTorch but unallocated.\n";

Answer ask(const Request& request, const std::string& input = "") {
  std::istringstream stream(input);
  return answer(request, stream);
}

Request reading_input() {
  Request request;
  request.inputs = {"-"};
  return request;
}

TEST(Answer, ALogOnStandardInput) {
  const Answer a = ask(reading_input(), kMessage);
  ASSERT_EQ(a.report.incident.messages.size(), 1u);
  EXPECT_EQ(a.report.incident.messages[0].requested_bytes, int64_t{2} << 30);
  EXPECT_EQ(a.report.diagnosis.fits, false);
  EXPECT_FALSE(a.config.has_value());
}

TEST(Answer, AConfigurationOnStandardInputIsToldFromALog) {
  const Answer a = ask(reading_input(),
                       "base_model: meta-llama/Llama-3.2-1B\nmicro_batch_size: 2\nsequence_len: 512\n"
                       "datasets:\n  - path: x\n    type: alpaca\n");
  ASSERT_TRUE(a.config.has_value());
  EXPECT_EQ(a.config->job.system, System::axolotl);
  EXPECT_TRUE(a.report.incident.estimate.has_value());
}

TEST(Answer, ACommandLineOnStandardInput) {
  Request request = reading_input();
  request.gpu = "h100";
  const Answer a = ask(request, "vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 8192\n");
  ASSERT_TRUE(a.config.has_value());
  EXPECT_EQ(a.report.diagnosis.fits, true);
}

TEST(Answer, AnOrdinaryLogHasNoMessage) {
  const Answer a = ask(reading_input(), "step 1 loss 2.3\nstep 2 loss 2.2\n");
  EXPECT_TRUE(a.report.incident.messages.empty());
  EXPECT_TRUE(a.report.looked_for_message);
  EXPECT_FALSE(a.report.diagnosis.fits.has_value());
}

// A DeepSpeed or accelerate file by itself: without the model there is no advice.
TEST(Answer, AFileWithoutAModelAsksForItFirst) {
  for (const char* file : {"{\"train_micro_batch_size_per_gpu\": 4, \"zero_optimization\": {\"stage\": 2}}",
                           "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_processes: 4\n"
                           "fsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n"}) {
    Request request = reading_input();
    request.gpu = "a100-40gb";
    const Report report = ask(request, file).report;
    EXPECT_EQ(report.ask, "headroom doctor - --gpu a100-40gb --model NAME");
    EXPECT_EQ(screen(report).rfind("WHICH MODEL? Run: headroom doctor - --gpu a100-40gb --model NAME\n", 0), 0u);
    request.model = "meta-llama/Llama-3.2-1B";
    EXPECT_EQ(ask(request, file).report.ask, "");
  }
}

TEST(Answer, TheCommandToRunAgainIsQuotedForTheShell) {
  Request request = reading_input();
  request.inputs = {"my file's.json"};
  Case incident;
  incident.job = Job();
  EXPECT_EQ(ask_for_model(request, incident), "headroom doctor 'my file'\\''s.json' --model NAME");
}

TEST(Answer, NothingIsAnError) { EXPECT_THROW(ask({}), Error); }

TEST(Answer, AModelAloneIsEnough) {
  Request request;
  request.parameters = "7B";
  request.gpu = "24GiB";
  const Answer a = ask(request);
  ASSERT_TRUE(a.report.incident.estimate.has_value());
  EXPECT_TRUE(a.report.incident.shape->guessed);
  EXPECT_EQ(a.report.diagnosis.fits, false);
  EXPECT_EQ(a.report.diagnosis.limit_bytes, int64_t{24} << 30);
}

// headroom's own command uses bf16 weights if fp32 ones leave too little of the device and the weights are not trained.
TEST(Answer, HeadroomsOwnCommandNarrowsWeightsThatAreNotTrained) {
  const std::string lora =
      "base_model: meta-llama/Llama-3.2-3B\nadapter: lora\nlora_r: 8\nmicro_batch_size: 1\nsequence_len: 512\n"
      "bf16: true\ndatasets:\n  - path: x\n    type: alpaca\n";
  const std::string full =
      "base_model: meta-llama/Llama-3.2-3B\nmicro_batch_size: 1\nsequence_len: 512\nbf16: true\ndatasets:\n"
      "  - path: x\n    type: alpaca\n";
  const auto command = [](const std::string& config, const std::string& gpu) {
    Request request = reading_input();
    request.gpu = gpu;
    return ask(request, config).report.headroom.command;
  };
  EXPECT_NE(command(lora, "8GiB").find("--precision bf16-true --lora-r 8"), std::string::npos) << command(lora, "8GiB");
  EXPECT_NE(command(lora, "80GiB").find("--precision bf16-mixed --lora-r 8"), std::string::npos);
  EXPECT_NE(command(full, "8GiB").find("--precision bf16-mixed"), std::string::npos) << "these weights are trained";
  const std::string serve = "vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 2048\n";
  EXPECT_NE(command(serve, "24GiB").find("headroom generate"), std::string::npos);
  EXPECT_NE(command(serve, "24GiB").find("--precision bf16-true"), std::string::npos);
  EXPECT_EQ(command(serve, "80GiB").find("--precision"), std::string::npos);
}

TEST(Answer, TheCapacityOfTheMessageIsTheLimit) {
  Request request = reading_input();
  request.model = "Qwen/Qwen2.5-7B";
  const Answer a = ask(request, kMessage);
  EXPECT_EQ(a.report.incident.capacity_bytes, a.report.incident.messages[0].capacity_bytes);
}

TEST(Answer, NamesThatAreUnknownAreErrorsWithARemedy) {
  Request request;
  request.model = "nobody/nothing";
  EXPECT_THROW(ask(request), Error);
  request.model.clear();
  request.parameters = "7 apples";
  EXPECT_THROW(ask(request), Error);
  request.parameters = "7B";
  request.gpu = "a100-400gb-ultra";
  try {
    ask(request);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.remedy().find("did you mean"), std::string::npos);
  }
}

TEST(Answer, ProbeOutputGivesTheLargestBatch) {
  Request request = reading_input();
  request.gpu = "24GiB";
  const Answer a =
      ask(request, "{\"batch\": 1, \"peak_bytes\": 4294967296}\n{\"batch\": 2, \"peak_bytes\": 5368709120}\n");
  EXPECT_NE(a.report.measured.find("3.00 GiB whatever the batch, 1.00 GiB per sample"), std::string::npos);
  EXPECT_NE(a.report.measured.find("batch 20"), std::string::npos) << a.report.measured;
}

TEST(Parameters, AreReadWithTheirUnit) {
  EXPECT_EQ(parse_parameters("7B"), 7e9);
  EXPECT_EQ(parse_parameters("350M"), 350e6);
  EXPECT_EQ(parse_parameters("1.1e9"), 1.1e9);
  for (const char* text : {"", "B", "7G", "-7B", "0", "nan", "inf", "1e400", "7BB"})
    EXPECT_THROW(parse_parameters(text), Error) << text;
}

}  // namespace
}  // namespace headroom::doctor
