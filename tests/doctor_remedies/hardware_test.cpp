// A larger GPU, more GPUs, a smaller model.
#include <algorithm>

#include "doctor/remedies/which_gpu.h"
#include "incidents.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;

Estimate by_model(const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu) {
  return estimate(job, shape, gpu);
}

TEST(WhichGpu, TheSmallestThatFitsComesFirst) {
  Job job = training_job(System::hf_trainer, 1, 1024);
  job.compute.checkpointing = true;
  const ModelShape shape = *find_model_shape(job.model);
  const std::vector<GpuChoice> choices = rank_gpus(job, shape, by_model);
  ASSERT_GT(choices.size(), 20u);
  ASSERT_TRUE(choices[0].fits);
  EXPECT_EQ(choices[0].count, 1);
  for (const GpuChoice& choice : choices) {
    EXPECT_TRUE(choice.count > 1 || !choice.fits || choice.gpu.memory_bytes >= choices[0].gpu.memory_bytes);
    if (choice.count > 1) continue;
    const Estimate there = estimate(job, shape, choice.gpu);
    EXPECT_EQ(choice.fits,
              there.high_bytes <= choice.gpu.memory_bytes &&
                  static_cast<double>(there.likely_bytes) <= 0.97 * static_cast<double>(choice.gpu.memory_bytes));
  }
}

TEST(WhichGpu, MoreOfThemWhereOneIsTooSmall) {
  Job job = training_job(System::oumi, 1, 2048);
  job.model = "meta-llama/Llama-3.1-8B";
  job.compute.checkpointing = true;
  const std::vector<GpuChoice> choices = rank_gpus(job, *find_model_shape(job.model), by_model);
  const auto found = std::find_if(choices.begin(), choices.end(),
                                  [](const GpuChoice& choice) { return choice.gpu.name == "A100-40GB"; });
  ASSERT_NE(found, choices.end());
  EXPECT_TRUE(found->fits);
  EXPECT_GT(found->count, 1);
  EXPECT_EQ(found->count & (found->count - 1), 0);
}

TEST(WhichGpu, SaysWhatAGpuLacks) {
  Job job = training_job(System::hf_trainer, 1, 512);
  job.precision.autocast = "bfloat16";
  const std::vector<GpuChoice> choices = rank_gpus(job, *find_model_shape(job.model), by_model);
  for (const GpuChoice& choice : choices) EXPECT_EQ(choice.note.empty(), choice.gpu.bf16) << choice.gpu.name;
  job.precision.autocast.reset();
  job.compute.attention = "flash_attention_2";
  for (const GpuChoice& choice : rank_gpus(job, *find_model_shape(job.model), by_model))
    EXPECT_EQ(choice.note.empty(), choice.gpu.flash_attention) << choice.gpu.name;
}

TEST(WhichGpu, AServerMustHoldOneRequest) {
  Job job = serving_job(System::vllm);
  job.serving.max_model_len = 65536;
  const std::vector<GpuChoice> choices = rank_gpus(job, *find_model_shape(job.model), by_model);
  for (const GpuChoice& choice : choices)
    EXPECT_TRUE(choice.gpu.name != "L4" || choice.count > 1) << "one L4 holds half of that";
}

TEST(LargerGpu, IsTheSmallestThatFitsAndComparable) {
  Job job = training_job(System::hf_trainer, 2, 2048);
  job.precision.autocast = "bfloat16";
  const Case incident = case_of(job, "rtx-4060-ti-16gb");
  const Diagnosis diagnosis = diagnose(incident);
  const Remedy remedy = expect_remedy(diagnosis, "larger-gpu");
  EXPECT_TRUE(remedy.fits_alone);
  EXPECT_EQ(remedy.effort, "hardware");
  EXPECT_EQ(remedy.kind, "exact");
  EXPECT_THAT(remedy.set, testing::Not(HasSubstr("V100"))) << "no bf16 there";
  EXPECT_THAT(remedy.set, testing::Not(HasSubstr("MI"))) << "another make";
  for (const Gpu& gpu : known_gpus()) {
    if (!remedy.set.ends_with("such as " + gpu.name)) continue;
    EXPECT_GT(gpu.memory_bytes, incident.gpu->memory_bytes);
    EXPECT_LE(estimate(job, *incident.shape, gpu).high_bytes, gpu.memory_bytes);
  }
}

TEST(LargerGpu, NotWhereItFitsAlready) {
  EXPECT_EQ(remedy_of(diagnose(case_of(training_job(System::hf_trainer, 1, 256), "h100-80gb")), "larger-gpu"), nullptr);
}

TEST(LargerGpu, AMessageAloneTellsTheLeast) {
  Case incident;
  incident.messages.push_back(cuda_message(2.22, 0.22, 76.28, 2.14, 79.15));
  const Remedy remedy = expect_remedy(diagnose(incident), "larger-gpu");
  EXPECT_FALSE(remedy.fits_alone);
  EXPECT_THAT(caveats_of(remedy), HasSubstr("the least that is needed"));
}

TEST(SmallerModel, InParameters) {
  Job job = training_job(System::hf_trainer, 1, 2048);
  job.model = "meta-llama/Llama-3.1-8B";
  const Case incident = case_of(job, "a100-80gb");
  const Remedy remedy = expect_remedy(diagnose(incident), "smaller-model");
  EXPECT_THAT(remedy.set, HasSubstr("B"));
  EXPECT_GT(remedy.cost, 15) << "another model is the last resort";
  EXPECT_LE(*remedy.saves_bytes, incident.estimate->likely_bytes);
}

}  // namespace
}  // namespace headroom::doctor
