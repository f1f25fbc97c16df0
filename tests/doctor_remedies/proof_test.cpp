// "Fits" is said only if the high end of the estimate, or the message's own figures, prove it.
#include "doctor/remedies/case_view.h"
#include "incidents.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;

Case crossing() {
  Case incident = case_of(training_job(System::hf_trainer, 4, 1024), "a100-40gb");
  incident.gpu.reset();
  incident.capacity_bytes = (incident.estimate->likely_bytes + incident.estimate->high_bytes) / 2;
  return incident;
}

TEST(Proof, ARangeThatCrossesTheLimitIsOnlyLikely) {
  const Case incident = crossing();
  const Diagnosis diagnosis = diagnose(incident);
  EXPECT_FALSE(diagnosis.fits.has_value());
  for (const Remedy& remedy : diagnosis.remedies)
    if (!remedy.changes.empty() && remedy.fits_alone) {
      const Estimate after = estimate(with_changes(*incident.job, remedy.changes), *incident.shape, std::nullopt);
      EXPECT_LE(after.high_bytes, *incident.capacity_bytes) << remedy.name;
    }
}

TEST(Proof, AboveTheUpperEndItFitsBelowTheLikelyItDoesNot) {
  Case incident = crossing();
  incident.capacity_bytes = incident.estimate->high_bytes * 21 / 20;
  EXPECT_EQ(diagnose(incident).fits, true);
  incident.capacity_bytes = incident.estimate->likely_bytes * 9 / 10;
  EXPECT_EQ(diagnose(incident).fits, false);
}

// Everything that leaves the estimate open is named, with what would settle it; until then nothing fits.
void expect_doubt(const Case& incident, const std::string& words) {
  const Diagnosis diagnosis = diagnose(incident);
  EXPECT_THAT(diagnosis.doubt, HasSubstr(words));
  EXPECT_NE(diagnosis.fits, true);
  for (const Remedy& remedy : diagnosis.remedies)
    EXPECT_FALSE(remedy.fits_alone && remedy.changes.size() == 1 && remedy.name == "micro-batch") << words;
}

TEST(Proof, WhatIsNotKnownIsNamed) {
  const Job job = training_job(System::hf_trainer, 1, 256);
  Case guessed = case_of(job, "h100-80gb");
  guessed.shape = guess_model_shape(1e9);
  guessed.estimate = estimate(job, *guessed.shape, guessed.gpu);
  expect_doubt(guessed, "--model config.json");

  Job open = job;
  open.batch.sequence.reset();
  expect_doubt(case_of(open, "h100-80gb"), "--max-seq-length");

  Job foreign = job;
  foreign.keys.unknown.push_back({{"cmd.sh", 1, "--finetuning_type"}, "", "lora"});
  expect_doubt(case_of(foreign, "h100-80gb"), "--finetuning_type");

  Job replaced = job;
  replaced.library = "unsloth";
  expect_doubt(case_of(replaced, "h100-80gb"), "unsloth");

  Case images = case_of(job, "h100-80gb");
  images.job->model = "meta-llama/Llama-3.2-11B-Vision-Instruct";
  expect_doubt(images, "images");
}

// A base that would change to 4 bits, and experts in any job: nothing shows what the loader quantises.
TEST(Proof, AChangeToA4BitBaseIsOnlyLikely) {
  Job job = training_job(System::hf_trainer, 1, 512);
  job.lora = LoraSettings{};
  const auto doubt_of = [](const Job& job, const char* model, const Changes& changes) {
    Case incident = case_of(job, "a100-80gb");
    incident.shape = find_model_shape(model);
    incident.estimate = estimate(job, *incident.shape, incident.gpu);
    const Estimator estimator = [](const Job& j, const ModelShape& s, const auto& g) { return estimate(j, s, g); };
    return CaseView(incident, estimator).doubt_after(changes);
  };
  const Changes to_4_bits{{"quantization", "nf4"}};
  EXPECT_EQ(doubt_of(job, "meta-llama/Llama-2-7b-hf", {}), "");
  EXPECT_THAT(doubt_of(job, "meta-llama/Llama-2-7b-hf", to_4_bits), HasSubstr("after loading"));
  EXPECT_THAT(doubt_of(job, "mistralai/Mixtral-8x7B-v0.1", to_4_bits), HasSubstr("experts"));
  job.precision.quantization = "nf4";
  EXPECT_EQ(doubt_of(job, "meta-llama/Llama-2-7b-hf", {}), "");
  EXPECT_THAT(doubt_of(job, "mistralai/Mixtral-8x7B-v0.1", {}), HasSubstr("experts"));
}

TEST(Proof, NothingIsInDoubtWhereAllIsStated) {
  const Diagnosis diagnosis = diagnose(case_of(training_job(System::hf_trainer, 1, 256), "h100-80gb"));
  EXPECT_EQ(diagnosis.doubt, "");
  EXPECT_EQ(diagnosis.fits, true);
}

// A job that failed on a device where the high end of its estimate fits: the estimate is wrong.
TEST(Proof, ALogThatRefutesTheEstimateWithdrawsIt) {
  Case incident = case_of(training_job(System::hf_trainer, 1, 256), "h100-80gb");
  incident.messages.push_back(cuda_message(2.0, 0.5, 70, 0.2, 79));
  const Diagnosis diagnosis = diagnose(incident);
  EXPECT_THAT(diagnosis.doubt, HasSubstr("the log shows more"));
  EXPECT_TRUE(diagnosis.smallest_fitting_set.empty());
  for (const Remedy& remedy : diagnosis.remedies) EXPECT_FALSE(remedy.fits_alone) << remedy.name;
}

}  // namespace
}  // namespace headroom::doctor
