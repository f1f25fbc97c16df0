// Which process holds bytes, and how much the host needs: only what is known is reported.
#include "doctor/remedies/balance.h"
#include "incidents.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;

Case with(Message message) {
  Case incident;
  incident.messages.push_back(std::move(message));
  return incident;
}

// A message without a figure for each process: memory beyond PyTorch and a context is not attributed.
TEST(Provenance, WhatNoFigureNamesIsUnattributed) {
  Message message = cuda_message(1, 0.3, 35, 2, 39.5);
  message.process_bytes.reset();
  const Diagnosis diagnosis = diagnose(with(message));
  EXPECT_EQ(cause_of(diagnosis, "other_processes"), nullptr);
  ASSERT_NE(cause_of(diagnosis, "unattributed"), nullptr);
  EXPECT_THAT(cause_of(diagnosis, "unattributed")->evidence, HasSubstr("unattributed: other processes, NCCL"));
  EXPECT_EQ(remedy_of(diagnosis, "end-other-processes"), nullptr) << "1.5 GiB may be NCCL's";
}

TEST(Provenance, MostOfTheDeviceUnattributedIsWorthALookAndNoMore) {
  Message message = cuda_message(0.2, 0.02, 0.4, 0.1, 24);
  message.process_bytes.reset();
  const Remedy remedy = expect_remedy(diagnose(with(message)), "end-other-processes");
  EXPECT_FALSE(remedy.likely_alone);
  EXPECT_FALSE(remedy.saves_bytes);
}

// In a container a process is listed under another id: it holds what PyTorch reserved plus a context.
TEST(Provenance, AProcessInAContainerIsThisOne) {
  Message message = cuda_message(1.95, 0.74, 20.9, 0.08, 22.09);
  message.process_bytes.reset();
  message.other_processes = {{2751070, gib(21.35)}};
  const Diagnosis diagnosis = diagnose(with(message));
  EXPECT_EQ(cause_of(diagnosis, "other_processes"), nullptr);
  EXPECT_EQ(remedy_of(diagnosis, "end-other-processes"), nullptr);
}

TEST(Provenance, EqualAsPrintedIsNoLimit) {
  Message message = cuda_message(4.44, 4.44, 5.77, 0.17, 10.58);
  message.figures = {{"requested", "4.44 GiB", gib(4.44), gib(0.01)}, {"free", "4.44 GiB", gib(4.44), gib(0.01)}};
  const Diagnosis diagnosis = diagnose(with(message));
  EXPECT_EQ(cause_of(diagnosis, "limit_below_capacity"), nullptr);
  ASSERT_NE(cause_of(diagnosis, "just_too_little"), nullptr);
  EXPECT_THAT(cause_of(diagnosis, "just_too_little")->evidence, HasSubstr("both are rounded"));
}

TEST(Provenance, BeforeTorch110ThereIsNoSplitSize) {
  Message message = cuda_message(0.5, 0.1, 5, 4, 10);
  message.format = "torch1_cached";
  EXPECT_THAT(refusal_of(diagnose(with(message)), "max-split-size"), HasSubstr("before 1.10"));
  message.format = "torch1_reserved_hint";
  expect_remedy(diagnose(with(message)), "max-split-size");
}

Message killed() {
  Message message;
  message.framework = "launcher";
  message.phase = "host_ram";
  message.hints = {"host_ram"};
  return message;
}

// Four processes on a node, each with its own copies.
TEST(HostMemory, IsCountedPerNode) {
  Job job = training_job(System::accelerate);
  job.model = "meta-llama/Llama-3.1-8B";
  job.parallel.sharding = Sharding::zero3;
  job.parallel.deepspeed = true;
  job.parallel.offload_optimizer = Offload::cpu;
  job.devices.gpus = 4;
  Case incident = case_of(job, "a10g");
  incident.messages.push_back(killed());
  incident.capacity_bytes = 174 * kGiB;
  const Diagnosis diagnosis = diagnose(incident);
  EXPECT_EQ(*diagnosis.need_bytes, 4 * incident.estimate->host_likely_bytes);
  EXPECT_THAT(expect_remedy(diagnosis, "host-memory").why, HasSubstr("for 4 processes of a node"));
}

TEST(HostMemory, IsSpeltForWhoeverLimitsIt) {
  Case incident = with(killed());
  incident.capacity_bytes = 8 * kGiB;
  const auto words = [&] { return expect_remedy(diagnose(incident), "host-memory").set; };
  EXPECT_EQ(words(), "more host memory (RAM), or swap for a short peak") << "no estimate says how much";
  incident.setup_text = "#sbatch --cpus-per-task=2\n#sbatch --mem-per-cpu=4g\n";
  EXPECT_THAT(words(), HasSubstr("#SBATCH --mem-per-cpu=<more than 4.00 GiB>, or more --cpus-per-task"));
  incident.setup_text = "#sbatch --mem=8g\n";
  EXPECT_THAT(words(), HasSubstr("#SBATCH --mem=<more than 8.00 GiB>"));
  EXPECT_THAT(words(), HasSubstr("MaxRSS"));
  incident.setup_text = "docker run image\n";
  EXPECT_THAT(words(), HasSubstr("docker run --memory=<more than 8.00 GiB>"));
  EXPECT_THAT(words(), HasSubstr("docker stats"));
  incident.setup_text.clear();
  incident.log_text = "linux version 5.15 microsoft-standard-wsl2\n";
  EXPECT_THAT(words(), HasSubstr(".wslconfig"));
}

}  // namespace
}  // namespace headroom::doctor
