// PyTorch's caching allocator, and other processes on the device.
#include "doctor/remedies/conflicts.h"
#include "incidents.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;

Diagnosis with(const Message& message, const Job* job = nullptr) {
  Case incident;
  incident.messages.push_back(message);
  if (job) incident.job = *job;
  return diagnose(incident);
}

TEST(Allocator, MuchUnallocatedIsACure) {
  const Diagnosis diagnosis = with(cuda_message(1.0, 0.1, 10, 9, 20));
  ASSERT_FALSE(diagnosis.causes.empty());
  EXPECT_EQ(diagnosis.causes[0].name, "fragmentation");
  const Remedy remedy = expect_remedy(diagnosis, "expandable-segments");
  EXPECT_FALSE(remedy.one_try);
  EXPECT_EQ(diagnosis.remedies[0].name, "expandable-segments") << "the first cause's answer comes first";
}

TEST(Allocator, NothingToDefragment) {
  const Diagnosis diagnosis = with(cuda_message(4.0, 0.1, 20, 0.5, 22));
  EXPECT_EQ(remedy_of(diagnosis, "expandable-segments"), nullptr);
  EXPECT_THAT(refusal_of(diagnosis, "expandable-segments"), HasSubstr("3.40 GiB are missing"));
  EXPECT_THAT(refusal_of(diagnosis, "empty-cache"), HasSubstr("no gain at the peak"));
}

TEST(Allocator, OldPytorchHasMaxSplitSizeOnly) {
  Message message = cuda_message(1.0, 0.1, 10, 9, 20);
  message.format = "torch1_max_split";
  const Diagnosis diagnosis = with(message);
  EXPECT_THAT(refusal_of(diagnosis, "expandable-segments"), HasSubstr("before 2.0"));
  EXPECT_EQ(expect_remedy(diagnosis, "max-split-size").set, "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128");
}

TEST(Allocator, NewerPytorchHasAnotherVariable) {
  Message message = cuda_message(1.0, 0.1, 10, 9, 20);
  message.text += " try setting PYTORCH_ALLOC_CONF=expandable_segments:True";
  EXPECT_EQ(expect_remedy(with(message), "expandable-segments").set,
            "export PYTORCH_ALLOC_CONF=expandable_segments:True");
  message.framework = "pytorch-hip";
  EXPECT_THAT(expect_remedy(with(message), "expandable-segments").set, HasSubstr("PYTORCH_HIP_ALLOC_CONF"));
}

TEST(Allocator, ExpandableSegmentsAndMaxSplitSizeDoNotGoTogether) {
  Job job = training_job(System::hf_trainer);
  job.environment.allocator["max_split_size_mb"] = "512";
  Diagnosis diagnosis = with(cuda_message(1.0, 0.1, 10, 9, 20), &job);
  EXPECT_THAT(caveats_of(expect_remedy(diagnosis, "expandable-segments")), HasSubstr("drop max_split_size_mb"));
  job.environment.allocator["expandable_segments"] = "True";
  diagnosis = with(cuda_message(1.0, 0.1, 10, 9, 20), &job);
  EXPECT_THAT(notes_of(diagnosis), HasSubstr("expandable_segments and max_split_size_mb do not go together"));
  EXPECT_THAT(refusal_of(diagnosis, "expandable-segments"), HasSubstr("on already"));
  Remedy a, b;
  a.name = "expandable-segments";
  b.name = "max-split-size";
  EXPECT_THAT(std::string(conflict_of(a, b, System::hf_trainer)), HasSubstr("never split"));
}

TEST(Allocator, OtherProcessesAreNamedAndCounted) {
  Message message = cuda_message(2.0, 0.5, 10, 0.2, 24);
  message.process_bytes = gib(10.7);
  message.other_processes = {{4242, gib(12.8)}};
  const Diagnosis diagnosis = with(message);
  ASSERT_FALSE(diagnosis.causes.empty());
  EXPECT_EQ(diagnosis.causes[0].name, "other_processes");
  EXPECT_THAT(diagnosis.causes[0].evidence, HasSubstr("process 4242 holds 12.80 GiB"));
  const Remedy remedy = expect_remedy(diagnosis, "end-other-processes");
  EXPECT_THAT(remedy.set, HasSubstr("kill 4242"));
  EXPECT_FALSE(remedy.fits_alone) << "this request, but nobody knows the next one";
  EXPECT_TRUE(remedy.likely_alone);
  EXPECT_EQ(diagnosis.remedies[0].name, "end-other-processes");
  EXPECT_THAT(caveats_of(remedy), HasSubstr("look whose they are first"));
  // What others hold is not available: 24 - 12.8.
  EXPECT_NEAR(static_cast<double>(*diagnosis.limit_bytes), static_cast<double>(gib(11.2)), 0.1 * kGiB);
}

TEST(Allocator, WhatMayBeAServersOwnProcessIsNotToBeKilled) {
  Message message = cuda_message(2.0, 0.5, 10, 0.2, 24);
  message.process_bytes = gib(10.7);
  message.other_processes = {{4242, gib(12.8)}};
  Job job = training_job(System::vllm);
  job.task = Task::serve;
  for (const Remedy& remedy : with(message, &job).remedies)
    EXPECT_THAT(remedy.set, testing::Not(HasSubstr("kill 4242"))) << remedy.name;
}

TEST(Allocator, ProcessesAreListedByTheToolOfTheDevice) {
  Message message = cuda_message(2.0, 0.5, 10, 0.2, 24);
  message.process_bytes = gib(10.7);
  message.other_processes = {{4242, gib(12.8)}};
  for (const auto& [framework, tool] : {std::pair("pytorch-cuda", "nvidia-smi;"), std::pair("pytorch-hip", "rocm-smi"),
                                        std::pair("pytorch-npu", "npu-smi"), std::pair("pytorch-xpu", "xpu-smi")}) {
    message.framework = framework;
    EXPECT_THAT(expect_remedy(with(message), "end-other-processes").set, HasSubstr(tool));
  }
}

TEST(Allocator, EnoughFreeAndRefusedIsALimit) {
  Message message = cuda_message(1.0, 4.0, 10, 0.2, 24);
  message.process_limit_bytes = gib(11);
  const Diagnosis diagnosis = with(message);
  const Cause* cause = cause_of(diagnosis, "limit_below_capacity");
  ASSERT_NE(cause, nullptr);
  EXPECT_THAT(cause->evidence, HasSubstr("11.00 GiB only"));
  EXPECT_EQ(remedy_of(diagnosis, "expandable-segments"), nullptr);
}

TEST(Allocator, OneTensorLargerThanTheDevice) {
  const Diagnosis diagnosis = with(cuda_message(64, 5, 10, 0.5, 24));
  ASSERT_FALSE(diagnosis.causes.empty());
  EXPECT_EQ(diagnosis.causes[0].name, "one_tensor_too_large");
}

// 4 x 2048 x 128256 x 4 bytes.
TEST(Allocator, ARequestOfTheLogitsSizeIsRecognised) {
  Job job = training_job(System::trl, 4, 2048);
  Case incident = case_of(job, "a100-40gb");
  Message message = cuda_message(1, 0.2, 38, 0.3, 39.4);
  message.requested_bytes = int64_t{4} * 2048 * 128256 * 4;
  incident.messages.push_back(message);
  const Diagnosis diagnosis = diagnose(incident);
  ASSERT_FALSE(diagnosis.causes.empty());
  EXPECT_EQ(diagnosis.causes[0].name, "logits");
  EXPECT_THAT(diagnosis.causes[0].evidence, HasSubstr("batch 4 x length 2048 x vocabulary 128256 x 4 bytes"));
  // 4 x 32 x 2048 x 2048 x 2
  incident.messages[0].requested_bytes = int64_t{4} * 32 * 2048 * 2048 * 2;
  const Diagnosis scores = diagnose(incident);
  EXPECT_NE(cause_of(scores, "attention_scores"), nullptr);
}

}  // namespace
}  // namespace headroom::doctor
