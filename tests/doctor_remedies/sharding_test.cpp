// Several GPUs, the host, the disk.
#include "doctor/remedies/conflicts.h"
#include "incidents.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;

Job sharded(System system) {
  Job job = training_job(system, 2, 4096);
  job.model = "meta-llama/Llama-3.1-8B";
  job.precision.weights = "bfloat16";
  job.devices.gpus = 4;
  job.parallel.sharding = Sharding::zero3;
  return job;
}

TEST(Sharding, SplitsStatesOverGpus) {
  Job job = training_job(System::oumi, 1, 2048);
  job.model = "meta-llama/Llama-3.2-3B";
  const Remedy remedy = expect_remedy(diagnose(case_of(job, "a100-40gb")), "shard");
  EXPECT_EQ(remedy.set, "fsdp.enable_fsdp: true, fsdp.sharding_strategy: FULL_SHARD");
  EXPECT_EQ(remedy.effort, "hardware") << "there is one GPU";
  EXPECT_GT(*remedy.saves_bytes, 0);
  job.devices.gpus = 4;
  EXPECT_EQ(expect_remedy(diagnose(case_of(job, "a100-40gb")), "shard").effort, "config");
}

// M3: Oumi's options for prefetch; forward prefetch is off by default.
TEST(Sharding, ForwardPrefetchIsOffByDefault) {
  const Remedy remedy = expect_remedy(diagnose(case_of(sharded(System::oumi), "a10")), "no-prefetch");
  EXPECT_EQ(remedy.set, "fsdp.backward_prefetch: NO_PREFETCH, fsdp.forward_prefetch: false");
  EXPECT_THAT(caveats_of(remedy), HasSubstr("forward prefetch is off by default already"));
  EXPECT_THAT(caveats_of(remedy), HasSubstr("significantly slower"));
  EXPECT_EQ(remedy.kind, "exact");
}

TEST(Sharding, PrefetchIsOffByDefaultUnderAccelerate) {
  Job job = sharded(System::hf_trainer);
  EXPECT_THAT(refusal_of(diagnose(case_of(job, "a10")), "no-prefetch"), HasSubstr("off by default already"));
  job.parallel.backward_prefetch = false;
  EXPECT_THAT(refusal_of(diagnose(case_of(job, "a10")), "no-prefetch"), HasSubstr("off already"));
  job.parallel.backward_prefetch = true;
  EXPECT_NE(remedy_of(diagnose(case_of(job, "a10")), "no-prefetch"), nullptr);
  job.parallel.fsdp2 = true;
  EXPECT_THAT(refusal_of(diagnose(case_of(job, "a10")), "no-prefetch"), HasSubstr("FSDP2 has no options"));
}

TEST(Sharding, LitgptsOffloadIsALiteral) {
  const Diagnosis diagnosis = diagnose(case_of(sharded(System::litgpt), "a10"));
  for (const char* name : {"offload-parameters", "offload-optimizer"})
    EXPECT_THAT(refusal_of(diagnosis, name), HasSubstr("literal")) << name;
}

TEST(Sharding, OumiHasNoRingAttention) {
  Job job = sharded(System::oumi);
  job.batch.sequence = 65536;
  job.compute.attention = "ring_attention";
  const Diagnosis diagnosis = diagnose(case_of(job, "a100-40gb"));
  EXPECT_THAT(notes_of(diagnosis), HasSubstr("Oumi has no ring attention"));
  EXPECT_THAT(refusal_of(diagnosis, "context-parallel"), HasSubstr("Oumi has no ring attention"));
  job.system = System::axolotl;
  job.compute.attention = "sdpa";
  EXPECT_EQ(expect_remedy(diagnose(case_of(job, "a100-40gb")), "context-parallel").set, "context_parallel_size: 4");
}

// Oumi's page freezes "layer.0", a name that Llama models do not have.
TEST(Sharding, OumiFreezesFullNamesOnly) {
  Job job = training_job(System::oumi);
  const Remedy remedy = expect_remedy(diagnose(case_of(job, "a10")), "freeze");
  EXPECT_THAT(remedy.set, HasSubstr("model.freeze_layers: [\"model.layers.0\""));
  job.frozen = "layer.0,layer.1,layer.2";
  EXPECT_THAT(notes_of(diagnose(case_of(job, "a10"))), HasSubstr("\"layer.0\" is \"model.layers.0\""));
}

TEST(Sharding, OffloadingTakesHostMemory) {
  Job job = training_job(System::deepspeed, 1, 2048);
  job.model = "meta-llama/Llama-3.1-8B";
  job.precision.autocast = "bfloat16";
  job.parallel.sharding = Sharding::zero2;
  job.devices.gpus = 2;
  const Diagnosis diagnosis = diagnose(case_of(job, "a100-80gb"));
  const Remedy states = expect_remedy(diagnosis, "offload-optimizer");
  EXPECT_THAT(states.set, HasSubstr("\"offload_optimizer\": {\"device\": \"cpu\"}"));
  EXPECT_GT(*states.host_bytes, 10 * kGiB);
  EXPECT_THAT(caveats_of(states), HasSubstr("of host memory per process"));
  const Remedy disk = expect_remedy(diagnosis, "offload-nvme");
  EXPECT_THAT(disk.set, HasSubstr("\"nvme_path\""));
  EXPECT_THAT(caveats_of(disk), HasSubstr("network file system"));
  EXPECT_GT(disk.slowdown, states.slowdown);
  job.parallel.offload_optimizer = Offload::cpu;
  EXPECT_THAT(refusal_of(diagnose(case_of(job, "a100-80gb")), "offload-optimizer"), HasSubstr("on the host already"));
}

// FSDP needs several processes; on one GPU it is DeepSpeed's stage 3.
TEST(Sharding, OffloadedParametersOnOneGpuAndOnFour) {
  Job job = training_job(System::oumi, 1, 2048);
  job.model = "meta-llama/Llama-3.1-8B";
  EXPECT_THAT(expect_remedy(diagnose(case_of(job, "rtx-4090")), "offload-parameters").set,
              HasSubstr("deepspeed.zero_stage: ZERO_3"));
  job.devices.gpus = 4;
  EXPECT_THAT(expect_remedy(diagnose(case_of(job, "rtx-4090")), "offload-parameters").set,
              HasSubstr("fsdp.cpu_offload: true"));
  job = training_job(System::torchtune, 1, 2048);
  EXPECT_THAT(refusal_of(diagnose(case_of(job, "a10")), "offload-parameters"), HasSubstr("two GPUs or more"));
}

TEST(Sharding, AccumulationUnderFsdpOffloadIsWarnedOf) {
  Job job = sharded(System::oumi);
  job.batch.accumulation = 8;
  EXPECT_THAT(caveats_of(expect_remedy(diagnose(case_of(job, "a10")), "offload-parameters")), HasSubstr("no_sync"));
}

TEST(Sharding, FourBitBasesShardWithTheirStorageOnly) {
  Job job = sharded(System::axolotl);
  job.lora = LoraSettings{};
  job.precision.quantization = "nf4";
  job.parallel.sharding = Sharding::none;
  job.devices.gpus = 2;
  const Diagnosis diagnosis = diagnose(case_of(job, "rtx-3060"));
  EXPECT_THAT(refusal_of(diagnosis, "offload-parameters"), HasSubstr("cannot be offloaded"));
  EXPECT_THAT(caveats_of(expect_remedy(diagnosis, "shard")), HasSubstr("bnb_4bit_quant_storage"));
}

TEST(Sharding, LitgptQuantisesOnOneDevice) {
  Job job = training_job(System::litgpt);
  EXPECT_THAT(expect_remedy(diagnose(case_of(job, "a10")), "qlora").set,
              HasSubstr("--quantize bnb.nf4 --precision bf16-true --devices 1"));
  job.devices.gpus = 2;
  EXPECT_THAT(refusal_of(diagnose(case_of(job, "a10")), "qlora"), HasSubstr("one device only"));
}

TEST(Sharding, BucketsOfHalfABillionElements) {
  Job job = sharded(System::deepspeed);
  job.parallel.sharding = Sharding::zero2;
  const Remedy remedy = expect_remedy(diagnose(case_of(job, "a100-80gb")), "smaller-buckets");
  EXPECT_THAT(remedy.set, HasSubstr("\"reduce_bucket_size\": 50000000"));
  EXPECT_GT(*remedy.saves_bytes, kGiB);
  job.parallel.buffers["reduce_bucket_size"] = 5000000;
  EXPECT_THAT(refusal_of(diagnose(case_of(job, "a100-80gb")), "smaller-buckets"), HasSubstr("small already"));
}

TEST(Sharding, DataParallelGathersOnTheFirst) {
  Case incident;
  Message message = cuda_message(1, 0.1, 14, 0.2, 15.7);
  message.frames = {{"/usr/lib/python3/torch/nn/parallel/data_parallel.py", 171, "forward", ""}};
  incident.messages.push_back(message);
  const Remedy remedy = expect_remedy(diagnose(incident), "ddp");
  EXPECT_THAT(remedy.set, HasSubstr("DistributedDataParallel instead of nn.DataParallel"));
}

TEST(Sharding, DdpsBucketsAreASecondCopy) {
  Job job = training_job(System::pytorch_script, 1, 1024);
  job.devices.gpus = 2;
  job.parallel.sharding = Sharding::ddp;
  const Case incident = case_of(job, "a100-40gb");
  const Remedy remedy = expect_remedy(diagnose(incident), "bucket-view");
  EXPECT_NEAR(static_cast<double>(*remedy.saves_bytes), 4 * incident.shape->parameters, 1e8);
}

TEST(Sharding, SavingsOfAShardedSaveAreNamed) {
  Case incident = case_of(sharded(System::hf_trainer), "a100-40gb");
  Message message = cuda_message(10, 1, 35, 1, 39.4);
  message.phase = "checkpoint_save";
  incident.messages.push_back(message);
  const Diagnosis diagnosis = diagnose(incident);
  EXPECT_NE(cause_of(diagnosis, "save"), nullptr);
  EXPECT_THAT(expect_remedy(diagnosis, "sharded-save").set, HasSubstr("SHARDED_STATE_DICT"));
}

TEST(Conflicts, AreSymmetricAndNeverWithoutReason) {
  const char* names[] = {"micro-batch",  "auto-batch",     "shard",           "offload-optimizer", "offload-parameters",
                         "offload-nvme", "optimizer-8bit", "paged-optimizer", "adafactor",         "sgd",
                         "lora",         "qlora",          "half-weights",    "mixed-precision",   "liger",
                         "chunked-loss", "freeze",         "larger-gpu"};
  for (const System system : all_systems())
    for (const char* a : names)
      for (const char* b : names) {
        Remedy first, second;
        first.name = a;
        second.name = b;
        EXPECT_EQ(conflict_of(first, second, system).empty(), conflict_of(second, first, system).empty())
            << a << " " << b;
      }
}

TEST(Conflicts, TrlsChunkedLossAndAdapters) {
  Remedy chunked, adapters;
  chunked.name = "chunked-loss";
  adapters.name = "lora";
  EXPECT_THAT(std::string(conflict_of(chunked, adapters, System::trl)), HasSubstr("use_liger_kernel"));
  EXPECT_TRUE(conflict_of(chunked, adapters, System::torchtune).empty());
  Job job = training_job(System::trl);
  job.lora = LoraSettings{};
  EXPECT_THAT(refusal_of(diagnose(case_of(job, "a10")), "chunked-loss"), HasSubstr("use_liger_kernel"));
}

}  // namespace
}  // namespace headroom::doctor
