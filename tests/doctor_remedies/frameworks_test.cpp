// Messages without figures, and messages of frameworks other than PyTorch.
#include "incidents.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;

Diagnosis of(const std::string& framework, const std::string& text = "out of memory") {
  Case incident;
  Message message;
  message.framework = framework;
  message.text = text;
  incident.messages.push_back(message);
  return diagnose(incident);
}

TEST(Frameworks, TensorflowIsAnsweredInItsOwnWords) {
  const Diagnosis diagnosis = of("tensorflow", "OOM when allocating tensor with shape[64,2016,9,9] and type float");
  EXPECT_EQ(diagnosis.remedies[0].name, "micro-batch");
  EXPECT_THAT(diagnosis.remedies[0].set, HasSubstr("model.fit"));
  EXPECT_EQ(expect_remedy(diagnosis, "own-allocator").set, "export TF_GPU_ALLOCATOR=cuda_malloc_async");
  EXPECT_EQ(remedy_of(diagnosis, "fused-optimizer"), nullptr);
  EXPECT_EQ(remedy_of(diagnosis, "qlora"), nullptr);
}

TEST(Frameworks, JaxPreallocates) {
  const Remedy remedy = expect_remedy(of("jax"), "grow-on-demand");
  EXPECT_EQ(remedy.set, "export XLA_PYTHON_CLIENT_PREALLOCATE=false");
  EXPECT_THAT(remedy.why, HasSubstr("75 %"));
}

TEST(Frameworks, LmdeploysShareGoesDown) {
  EXPECT_EQ(expect_remedy(of("lmdeploy"), "gpu-memory-utilization").set, "--cache-max-entry-count 0.4");
}

TEST(Frameworks, WithAJobTheJobsWordsHold) {
  Case incident = case_of(training_job(System::hf_trainer), "a10");
  Message message;
  message.framework = "jax";
  incident.messages.push_back(message);
  EXPECT_EQ(expect_remedy(diagnose(incident), "optimizer-8bit").set, "optim=\"adamw_bnb_8bit\"");
}

TEST(Frameworks, AMessageWithoutFiguresStillGetsTheUsualOrder) {
  const Diagnosis diagnosis = of("pytorch-cuda", "cuda runtime error (2) : out of memory");
  ASSERT_EQ(diagnosis.causes.size(), 1u);
  EXPECT_EQ(diagnosis.causes[0].name, "failed_without_figures");
  EXPECT_EQ(diagnosis.remedies[0].name, "micro-batch");
  EXPECT_EQ(diagnosis.remedies[1].name, "end-other-processes");
  for (const Remedy& remedy : diagnosis.remedies) EXPECT_FALSE(remedy.saves_bytes && *remedy.saves_bytes < 0);
}

TEST(Frameworks, AComputeBufferOfLlamaCpp) {
  Case incident;
  Message message;
  message.framework = "llama.cpp";
  message.phase = "compute_buffer";
  message.requested_bytes = 50 * kGiB;
  incident.messages.push_back(message);
  const Diagnosis diagnosis = diagnose(incident);
  ASSERT_FALSE(diagnosis.causes.empty());
  EXPECT_EQ(diagnosis.causes[0].name, "compute_buffer");
  EXPECT_EQ(diagnosis.remedies[0].set, "--ubatch-size 128");
}

}  // namespace
}  // namespace headroom::doctor
