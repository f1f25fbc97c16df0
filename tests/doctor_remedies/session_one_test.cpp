// M2's message, the first one that doctor could answer.
#include "incidents.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;

Message session_one() {
  Message message = cuda_message(2.22, 228.38 / 1024, 76.28, 2.14, 79.15);
  message.process_bytes = gib(78.93);
  message.format = "torch2.1";
  message.text =
      "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.22 GiB. If reserved but unallocated memory is large "
      "try setting max_split_size_mb to avoid fragmentation. See documentation for Memory Management and "
      "PYTORCH_CUDA_ALLOC_CONF";
  return message;
}

Diagnosis answer() {
  Case incident;
  incident.messages.push_back(session_one());
  return diagnose(incident);
}

TEST(SessionOne, LiveTensorsFillTheDevice) {
  const Diagnosis diagnosis = answer();
  ASSERT_FALSE(diagnosis.causes.empty());
  EXPECT_EQ(diagnosis.causes[0].name, "tensors_fill_the_device");
  EXPECT_THAT(diagnosis.causes[0].evidence, HasSubstr("76.28 GiB of 79.15 GiB"));
}

// free 0.22 + unallocated 2.14 = 2.36 GiB for a request of 2.22: 0.14 GiB would be left.
TEST(SessionOne, DefragmentationWouldJustServeThisRequest) {
  const Diagnosis diagnosis = answer();
  const Cause* cause = cause_of(diagnosis, "fragmentation");
  ASSERT_NE(cause, nullptr);
  EXPECT_THAT(cause->evidence, HasSubstr("free 0.22 GiB + unallocated 2.14 GiB = 2.36 GiB against 2.22 GiB asked"));
  EXPECT_THAT(cause->evidence, HasSubstr("0.14 GiB left"));
  EXPECT_THAT(cause->evidence, HasSubstr("worth one try, but not a fix"));
  EXPECT_LT(cause->weight, diagnosis.causes[0].weight);
}

TEST(SessionOne, ExpandableSegmentsAreOneTryAndNoCure) {
  const Diagnosis diagnosis = answer();
  const Remedy remedy = expect_remedy(diagnosis, "expandable-segments");
  EXPECT_EQ(remedy.set, "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  EXPECT_TRUE(remedy.one_try);
  EXPECT_FALSE(remedy.fits_alone);
  EXPECT_THAT(caveats_of(remedy), HasSubstr("worth one try, but not a fix"));
  EXPECT_THAT(caveats_of(remedy), HasSubstr("PYTORCH_ALLOC_CONF"));
  EXPECT_THAT(remedy.why, HasSubstr("0.14 GiB would be left"));
  EXPECT_EQ(remedy.saves_bytes, gib(2.14));
  // The message's own advice is the older of the two settings.
  EXPECT_THAT(refusal_of(diagnosis, "max-split-size"), HasSubstr("not both"));
}

// 79.15 - 0.22 - 78.42 = 0.51 GiB.
TEST(SessionOne, HalfAGibibyteIsNotPytorchs) {
  const Diagnosis diagnosis = answer();
  const Cause* cause = cause_of(diagnosis, "outside_pytorch");
  ASSERT_NE(cause, nullptr);
  EXPECT_THAT(cause->evidence, HasSubstr("0.51 GiB are not PyTorch's"));
  EXPECT_EQ(cause_of(diagnosis, "other_processes"), nullptr);
  EXPECT_EQ(remedy_of(diagnosis, "end-other-processes"), nullptr);
}

TEST(SessionOne, WhatItWantsIsWhatItHadAndAskedFor) {
  const Diagnosis diagnosis = answer();
  ASSERT_TRUE(diagnosis.need_bytes);
  // 76.28 live + 2.22 requested + 0.51 outside.
  EXPECT_NEAR(static_cast<double>(*diagnosis.need_bytes), static_cast<double>(gib(79.01)), 0.02 * kGiB);
  EXPECT_EQ(diagnosis.fits, false);
}

TEST(SessionOne, ManualsAdviceIsThereInItsOrder) {
  const Diagnosis diagnosis = answer();
  for (const char* name : {"micro-batch", "sequence-length", "mixed-precision", "half-weights", "shard", "lion"})
    EXPECT_NE(remedy_of(diagnosis, name), nullptr) << name;
  EXPECT_THAT(refusal_of(diagnosis, "empty-cache"), testing::IsEmpty()) << "fragmented: it may help here";
}

// With a LitGPT job the options are LitGPT's, and missing ones are reported.
TEST(SessionOne, WithItsConfigurationTheOptionsAreLitgpts) {
  Job job = training_job(System::litgpt, 4, 4096);
  job.model = "meta-llama/Llama-2-7b-hf";
  job.batch.global = 64;
  job.batch.accumulation.reset();
  job.precision.autocast = "bfloat16";
  Case incident = case_of(job, "a100-80gb");
  incident.messages.push_back(session_one());
  incident.capacity_bytes = gib(79.15);
  const Diagnosis diagnosis = diagnose(incident);
  EXPECT_EQ(expect_remedy(diagnosis, "half-weights").set, "--precision bf16-true");
  EXPECT_THAT(refusal_of(diagnosis, "offload-parameters"), HasSubstr("cpu_offload=False is a literal"));
  EXPECT_THAT(refusal_of(diagnosis, "checkpointing"), HasSubstr("only under FSDP"));
  EXPECT_THAT(expect_remedy(diagnosis, "micro-batch").set, HasSubstr("--train.micro_batch_size "));
}

}  // namespace
}  // namespace headroom::doctor
