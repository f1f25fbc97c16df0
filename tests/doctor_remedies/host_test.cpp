// Host memory, shared memory, loading.
#include "incidents.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;

Message killed(const std::string& framework) {
  Message message;
  message.framework = framework;
  message.text = "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0";
  message.hints = {"host_ram"};
  message.phase = "host_ram";
  return message;
}

TEST(Host, ASchedulersLimitIsNoMatterOfTheGpu) {
  Case incident;
  incident.messages.push_back(killed("slurm"));
  incident.messages[0].process_bytes = 64 * kGiB;
  incident.capacity_bytes = 64 * kGiB;
  const Diagnosis diagnosis = diagnose(incident);
  EXPECT_TRUE(diagnosis.host);
  ASSERT_FALSE(diagnosis.causes.empty());
  EXPECT_EQ(diagnosis.causes[0].name, "host_memory");
  const Remedy remedy = expect_remedy(diagnosis, "host-memory");
  EXPECT_THAT(remedy.set, HasSubstr("#SBATCH --mem=<more than 64.00 GiB>")) << "a factor would be a guess";
  EXPECT_THAT(remedy.set, HasSubstr("sacct -j JOB -o MaxRSS"));
  EXPECT_FALSE(remedy.fits_alone);
  EXPECT_EQ(remedy_of(diagnosis, "micro-batch"), nullptr);
  EXPECT_EQ(remedy_of(diagnosis, "mixed-precision"), nullptr);
}

TEST(Host, KubernetesHasItsOwnWord) {
  Case incident;
  incident.messages.push_back(killed("kubernetes"));
  const std::string set = expect_remedy(diagnose(incident), "host-memory").set;
  EXPECT_THAT(set, HasSubstr("resources.limits.memory"));
  EXPECT_THAT(set, HasSubstr("kubectl describe pod"));
}

// Held and asked for together are more than the limit: the least that is needed.
TEST(Host, APrintedNeedIsSaid) {
  Case incident;
  incident.messages.push_back(killed("slurm"));
  incident.messages[0].allocated_bytes = 60 * kGiB;
  incident.messages[0].requested_bytes = 10 * kGiB;
  incident.capacity_bytes = 64 * kGiB;
  const Remedy remedy = expect_remedy(diagnose(incident), "host-memory");
  EXPECT_EQ(remedy.set, "#SBATCH --mem=71G");
  EXPECT_THAT(remedy.why, HasSubstr("70.00 GiB were held and asked for"));
}

// M4: as many data loader workers as GPUs is advice about speed.
TEST(Host, WorkersAreProcessesWithCopies) {
  Job job = training_job(System::hf_trainer);
  job.load.workers = 32;
  Case incident = case_of(job, "a100-40gb");
  incident.capacity_bytes.reset();
  incident.messages.push_back(killed("linux-oom"));
  const Remedy remedy = expect_remedy(diagnose(incident), "fewer-workers");
  EXPECT_EQ(remedy.set, "dataloader_num_workers=8");
  EXPECT_GT(*remedy.saves_bytes, kGiB);
  EXPECT_THAT(caveats_of(remedy), HasSubstr("about speed, not memory"));
  incident.job->load.workers = 0;
  EXPECT_THAT(refusal_of(diagnose(incident), "fewer-workers"), HasSubstr("by the process itself"));
}

TEST(Host, OnTheCpuTheBatchIsHostMemory) {
  Case incident;
  incident.messages.push_back(killed("pytorch-cpu"));
  incident.messages[0].requested_bytes = 4 * kGiB;
  const Diagnosis diagnosis = diagnose(incident);
  EXPECT_NE(remedy_of(diagnosis, "micro-batch"), nullptr);
  EXPECT_EQ(remedy_of(diagnosis, "optimizer-8bit"), nullptr);
}

TEST(Host, OllamaWeighsBeforeItLoads) {
  Case incident;
  incident.messages.push_back(killed("ollama"));
  const Diagnosis diagnosis = diagnose(incident);
  EXPECT_EQ(expect_remedy(diagnosis, "max-model-len").set, "export OLLAMA_CONTEXT_LENGTH=4096");
  EXPECT_THAT(expect_remedy(diagnosis, "quantized-model").set, HasSubstr("smaller tag"));
}

TEST(Host, SharedMemoryOfAContainer) {
  Case incident;
  Message message;
  message.framework = "pytorch-dataloader";
  message.text =
      "RuntimeError: DataLoader worker (pid 42) is killed by signal: Bus error. It is possible that "
      "dataloader's workers are out of shared memory. Please try to raise your shared memory limit.";
  message.hints = {"shared_memory"};
  incident.messages.push_back(message);
  const Diagnosis diagnosis = diagnose(incident);
  ASSERT_FALSE(diagnosis.causes.empty());
  EXPECT_EQ(diagnosis.causes[0].name, "shared_memory");
  const Remedy remedy = expect_remedy(diagnosis, "shared-memory");
  EXPECT_THAT(remedy.set, HasSubstr("--shm-size"));
  EXPECT_THAT(caveats_of(remedy), HasSubstr("64 MiB by default"));
}

TEST(Host, LoadingUnderFsdpReadsTheModelOften) {
  Job job = training_job(System::accelerate);
  job.model = "meta-llama/Llama-3.1-8B";
  job.parallel.sharding = Sharding::zero3;
  job.devices.gpus = 8;
  Case incident = case_of(job, "a100-80gb");
  Message message = killed("linux-oom");
  message.phase = "load";
  incident.messages.push_back(message);
  const Remedy remedy = expect_remedy(diagnose(incident), "lean-load");
  EXPECT_THAT(remedy.set, HasSubstr("fsdp_cpu_ram_efficient_loading: true"));
  EXPECT_THAT(remedy.why, HasSubstr("every process reads the whole model"));
  incident.job->load.ram_efficient = true;
  EXPECT_EQ(remedy_of(diagnose(incident), "lean-load"), nullptr);
}

}  // namespace
}  // namespace headroom::doctor
