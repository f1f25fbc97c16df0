// Optimizers with smaller states, and where they do not help.
#include "doctor/remedies/conflicts.h"
#include "incidents.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;

TEST(Optimizer, EightBitOptimizersDoNotGoWithZero) {
  Job job = training_job(System::hf_trainer);
  job.parallel.deepspeed = true;
  job.parallel.sharding = Sharding::zero2;
  job.devices.gpus = 2;
  const Diagnosis diagnosis = diagnose(case_of(job, "a100-40gb"));
  for (const char* name : {"optimizer-8bit", "paged-optimizer"}) {
    EXPECT_EQ(remedy_of(diagnosis, name), nullptr) << name;
    EXPECT_THAT(refusal_of(diagnosis, name), HasSubstr("do not go with ZeRO")) << name;
  }
  job.optimizer.name = "adamw_8bit";
  EXPECT_THAT(notes_of(diagnose(case_of(job, "a100-40gb"))), HasSubstr("8-bit optimizers do not go with ZeRO"));
}

TEST(Optimizer, EightBitUnderFsdpCannotBeGathered) {
  Job job = training_job(System::trl);
  job.parallel.sharding = Sharding::zero3;
  job.devices.gpus = 2;
  const Remedy remedy = expect_remedy(diagnose(case_of(job, "a100-40gb")), "optimizer-8bit");
  EXPECT_THAT(caveats_of(remedy), HasSubstr("cannot be gathered"));
}

TEST(Optimizer, EightBitAndShardingConflictByDeepspeedOnly) {
  Remedy eight, shard;
  eight.name = "optimizer-8bit";
  shard.name = "shard";
  EXPECT_FALSE(conflict_of(eight, shard, System::deepspeed).empty());
  EXPECT_FALSE(conflict_of(shard, eight, System::axolotl).empty());
  EXPECT_TRUE(conflict_of(eight, shard, System::oumi).empty());
  Remedy offload;
  offload.name = "offload-optimizer";
  EXPECT_FALSE(conflict_of(eight, offload, System::oumi).empty());
}

// M2: under LoRA the trained weights are a small share.
TEST(Optimizer, AnotherOptimizerSavesLittleUnderLora) {
  Job job = training_job(System::litgpt);
  job.lora = LoraSettings{};
  const Diagnosis diagnosis = diagnose(case_of(job, "rtx-3060"));
  for (const char* name : {"optimizer-8bit", "paged-optimizer", "adafactor", "lion", "sgd", "fused-optimizer"}) {
    EXPECT_EQ(remedy_of(diagnosis, name), nullptr) << name;
    EXPECT_THAT(refusal_of(diagnosis, name), HasSubstr("saves little under LoRA")) << name;
    EXPECT_THAT(refusal_of(diagnosis, name), HasSubstr("% of the weights are trained")) << name;
  }
  EXPECT_THAT(refusal_of(diagnosis, "offload-optimizer"), HasSubstr("small"));
}

TEST(Optimizer, AdafactorIsKnownToBeUnstable) {
  const Remedy remedy = expect_remedy(diagnose(case_of(training_job(System::hf_trainer), "a100-40gb")), "adafactor");
  EXPECT_EQ(remedy.set, "optim=\"adafactor\"");
  EXPECT_THAT(caveats_of(remedy), HasSubstr("unstable"));
  EXPECT_EQ(remedy.kind, "lossy");
}

// AdamW 8 bytes per weight, 8-bit 2 and tables in 32 bits, Lion 4, SGD none, Adafactor rows and columns.
TEST(Optimizer, SavesWhatItsStatesTakeLess) {
  Job job = training_job(System::pytorch_script, 1, 512);
  job.optimizer.name = "adamw_torch_fused";
  job.compute.checkpointing = true;
  const Case incident = case_of(job, "a100-40gb");
  const Diagnosis diagnosis = diagnose(incident);
  const double weights = incident.shape->parameters;
  const auto saves = [&](const char* name) {
    return static_cast<double>(expect_remedy(diagnosis, name).saves_bytes.value_or(0));
  };
  EXPECT_NEAR(saves("optimizer-8bit"), 6 * weights, 0.1 * weights);
  EXPECT_NEAR(saves("sgd"), 8 * weights, 0.1 * weights);
  EXPECT_NEAR(saves("lion"), 4 * weights, 0.1 * weights);
  // Its step needs three float32 copies of the largest weight, the table. AdamW's peak is at the end of backward, with
  // the tied table's second gradient.
  const double table = static_cast<double>(incident.shape->vocab * incident.shape->hidden);
  EXPECT_NEAR(saves("adafactor"), 8 * weights - (3 - 1) * 4 * table, 0.1 * weights);
}

TEST(Optimizer, FusedSavesTheTemporaries) {
  Job job = training_job(System::pytorch_script, 1, 512);
  job.optimizer.name = "adamw";
  job.compute.checkpointing = true;
  const Remedy remedy = expect_remedy(diagnose(case_of(job, "a100-40gb")), "fused-optimizer");
  EXPECT_EQ(remedy.set, "torch.optim.AdamW(..., fused=True), or foreach=False");
  EXPECT_GT(*remedy.saves_bytes, kGiB);
  EXPECT_EQ(remedy.kind, "reassociating");
}

// M3's paged Adam: its states stay on the device while there is room.
TEST(Optimizer, PagedStatesLeaveOnlyWhenRoomIsShort) {
  Job job = training_job(System::oumi, 1, 512);
  job.precision.weights = "float32";
  const Remedy remedy = expect_remedy(diagnose(case_of(job, "rtx-3060")), "paged-optimizer");
  EXPECT_EQ(remedy.set, "training.optimizer: paged_adamw_32bit");
  EXPECT_GE(*remedy.saves_bytes, 0);
  EXPECT_THAT(caveats_of(remedy), HasSubstr("page faults"));
  EXPECT_THAT(remedy.needs, HasSubstr("bitsandbytes"));
  EXPECT_EQ(remedy.kind, "exact");
  // Without a device the lack of room is unknown: at most all states leave.
  Case incident;
  incident.job = job;
  incident.shape = find_model_shape(job.model);
  incident.estimate = estimate(job, *incident.shape, std::nullopt);
  incident.capacity_bytes = 16 * kGiB;
  const Remedy most = expect_remedy(diagnose(incident), "paged-optimizer");
  EXPECT_EQ(most.saves_bytes, most.host_bytes);
  EXPECT_THAT(caveats_of(most), HasSubstr("at most"));
}

TEST(Optimizer, InBackwardNeedsOneStepAndNoClipping) {
  Job job = training_job(System::torchtune, 1, 512);
  Diagnosis diagnosis = diagnose(case_of(job, "rtx-4090"));
  const Remedy remedy = expect_remedy(diagnosis, "optimizer-in-backward");
  EXPECT_EQ(remedy.set, "optimizer_in_bwd: true, gradient_accumulation_steps: 1, clip_grad_norm: null");
  job.batch.accumulation = 8;
  diagnosis = diagnose(case_of(job, "rtx-4090"));
  EXPECT_THAT(refusal_of(diagnosis, "optimizer-in-backward"), HasSubstr("accumulated over 8 steps"));
  job = training_job(System::pytorch_script, 1, 512);
  job.optimizer.max_grad_norm = 1.0;
  EXPECT_THAT(caveats_of(expect_remedy(diagnose(case_of(job, "rtx-4090")), "optimizer-in-backward")),
              HasSubstr("clipping must go"));
}

TEST(Optimizer, ALightOneNeedsNoLighterOne) {
  Job job = training_job(System::hf_trainer);
  job.optimizer.name = "adafactor";
  const Diagnosis diagnosis = diagnose(case_of(job, "a10"));
  EXPECT_THAT(refusal_of(diagnosis, "optimizer-8bit"), HasSubstr("light already"));
  EXPECT_EQ(remedy_of(diagnosis, "lion"), nullptr);
}

TEST(Optimizer, ApexIsGone) {
  Job job = training_job(System::hf_trainer);
  job.precision.apex = true;
  EXPECT_THAT(notes_of(diagnose(case_of(job, "v100-16gb"))), HasSubstr("apex.amp is gone"));
  Case incident;
  Message message = cuda_message(1, 0.1, 14, 0.2, 15.7);
  message.frames = {{"/opt/conda/lib/python3.6/site-packages/apex/amp/handle.py", 123, "scale_loss", ""}};
  incident.messages.push_back(message);
  EXPECT_THAT(notes_of(diagnose(incident)), HasSubstr("since 1.6 and needs no apex"));
}

TEST(Optimizer, SystemsSpellTheSameTechniqueDifferently) {
  const auto set = [](System system, const char* name) {
    return expect_remedy(diagnose(case_of(training_job(system), "rtx-4090")), name).set;
  };
  EXPECT_EQ(set(System::hf_trainer, "optimizer-8bit"), "optim=\"adamw_bnb_8bit\"");
  EXPECT_EQ(set(System::oumi, "optimizer-8bit"), "training.optimizer: adamw_8bit");
  EXPECT_EQ(set(System::axolotl, "optimizer-8bit"), "optimizer: adamw_bnb_8bit");
  EXPECT_EQ(set(System::llamafactory, "optimizer-8bit"), "optim: adamw_bnb_8bit");
  EXPECT_EQ(set(System::torchtune, "optimizer-8bit"), "optimizer._component_: bitsandbytes.optim.AdamW8bit");
  EXPECT_EQ(set(System::litgpt, "optimizer-8bit"), "--optimizer bitsandbytes.optim.AdamW8bit");
}

}  // namespace
}  // namespace headroom::doctor
