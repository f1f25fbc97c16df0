// Batches, lengths, evaluation.
#include "incidents.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string change(const Remedy& remedy, const std::string& field) {
  for (const auto& [name, value] : remedy.changes)
    if (name == field) return value;
  return {};
}

TEST(Batch, ASmallerMicroBatchKeepsTheGlobalOne) {
  Job job = training_job(System::hf_trainer, 16, 1024);
  job.batch.accumulation = 2;
  const Remedy remedy = expect_remedy(diagnose(case_of(job, "a100-40gb")), "micro-batch");
  const int64_t micro = std::stoll(change(remedy, "micro_batch")), steps = std::stoll(change(remedy, "accumulation"));
  EXPECT_LT(micro, 16);
  EXPECT_EQ(micro * steps, 32);
  EXPECT_THAT(caveats_of(remedy), HasSubstr("global batch stays 32"));
  EXPECT_THAT(caveats_of(remedy), HasSubstr("convergence stays: it changes only with that"));
  EXPECT_EQ(remedy.set, "per_device_train_batch_size=" + std::to_string(micro) +
                            ", gradient_accumulation_steps=" + std::to_string(steps));
}

// M2 says that smaller micro-batches converge more slowly: true only if the global batch changes.
TEST(Batch, AnUnevenSplitChangesTheGlobalBatchAndSaysSo) {
  Job job = training_job(System::hf_trainer, 5, 1024);
  const Remedy remedy = expect_remedy(diagnose(case_of(job, "a100-40gb")), "micro-batch");
  EXPECT_EQ(change(remedy, "micro_batch"), "2");
  EXPECT_EQ(change(remedy, "accumulation"), "3");
  EXPECT_THAT(caveats_of(remedy), HasSubstr("becomes 6 instead of 5"));
  EXPECT_THAT(caveats_of(remedy), HasSubstr("convergence changes a little"));
}

TEST(Batch, TheLargestHalvingThatFitsIsTaken) {
  const Case incident = case_of(training_job(System::hf_trainer, 32, 512), "rtx-4090");
  const Remedy remedy = expect_remedy(diagnose(incident), "micro-batch");
  ASSERT_TRUE(remedy.fits_alone);
  const int64_t micro = std::stoll(change(remedy, "micro_batch"));
  Job twice = *incident.job;
  twice.batch.micro = 2 * micro;
  twice.batch.accumulation = 32 / (2 * micro);
  const double limit = 0.97 * static_cast<double>(*incident.capacity_bytes);
  EXPECT_GT(static_cast<double>(estimate(twice, *incident.shape, incident.gpu).likely_bytes), limit);
}

TEST(Batch, LitgptDerivesItsSteps) {
  Job job = training_job(System::litgpt, 8, 2048);
  job.batch.accumulation.reset();
  job.batch.global = 64;
  const Remedy remedy = expect_remedy(diagnose(case_of(job, "a10")), "micro-batch");
  EXPECT_EQ(remedy.set, "--train.micro_batch_size " + change(remedy, "micro_batch"));
  EXPECT_EQ(change(remedy, "accumulation"), "");
  EXPECT_GT(*remedy.saves_bytes, 0);
  EXPECT_THAT(caveats_of(remedy), HasSubstr("it follows by itself"));
  EXPECT_THAT(caveats_of(remedy), HasSubstr("global batch stays 64"));
}

TEST(Batch, OneIsTheLeast) {
  const Diagnosis diagnosis = diagnose(case_of(training_job(System::hf_trainer, 1), "a10"));
  EXPECT_THAT(refusal_of(diagnosis, "micro-batch"), HasSubstr("1 already"));
  EXPECT_EQ(remedy_of(diagnosis, "auto-batch"), nullptr);
}

TEST(Batch, BelowOneThereAreChunks) {
  const Remedy remedy =
      expect_remedy(diagnose(case_of(training_job(System::hf_trainer, 1, 16384), "a10")), "sequence-chunks");
  EXPECT_THAT(remedy.set, HasSubstr("TiledMLP"));
  EXPECT_EQ(remedy.row, "T03");
}

TEST(Batch, AutomaticBatchFindersDoNotWorkUnderFsdp) {
  Job job = training_job(System::hf_trainer);
  EXPECT_EQ(expect_remedy(diagnose(case_of(job, "a10")), "auto-batch").set, "auto_find_batch_size=True");
  job.parallel.sharding = Sharding::zero3;
  job.devices.gpus = 4;
  EXPECT_THAT(refusal_of(diagnose(case_of(job, "a10")), "auto-batch"), HasSubstr("do not work under FSDP"));
  job.batch.finds_size = true;
  EXPECT_THAT(notes_of(diagnose(case_of(job, "a10"))), HasSubstr("does not work under FSDP"));
  job = training_job(System::hf_trainer);
  job.batch.finds_size = true;
  EXPECT_THAT(caveats_of(expect_remedy(diagnose(case_of(job, "a10")), "shard")), HasSubstr("auto_find_batch_size"));
}

TEST(Batch, AShorterSequenceCostsMoreTheShorterItIs) {
  const Remedy little =
      expect_remedy(diagnose(case_of(training_job(System::trl, 4, 8192), "a100-80gb")), "sequence-length");
  const Remedy much =
      expect_remedy(diagnose(case_of(training_job(System::trl, 4, 8192), "rtx-3060")), "sequence-length");
  EXPECT_EQ(much.set, "max_length=512");
  EXPECT_GT(much.cost, little.cost + 2);
  EXPECT_EQ(much.kind, "lossy");
}

TEST(Batch, PackedRowsBecomeShorterPacks) {
  Job job = training_job(System::trl, 4, 8192);
  job.batch.packing = true;
  const Diagnosis diagnosis = diagnose(case_of(job, "a100-40gb"));
  EXPECT_EQ(remedy_of(diagnosis, "sequence-length"), nullptr);
  const Remedy remedy = expect_remedy(diagnosis, "shorter-pack");
  EXPECT_EQ(remedy.kind, "data-order");
  EXPECT_THAT(remedy.set, HasSubstr("packing=True"));
}

// M1: out of memory in the middle of training.
TEST(Batch, MidTrainingIsTheLongestBatch) {
  Case incident;
  Job job = training_job(System::hf_trainer);
  incident.job = job;
  incident.messages.push_back(cuda_message(1, 0.1, 22, 0.3, 23.6));
  incident.growth.kind = GrowthKind::length;
  incident.growth.evidence = {"memory follows the longest row of the batch"};
  const Diagnosis diagnosis = diagnose(incident);
  EXPECT_NE(cause_of(diagnosis, "variable_length"), nullptr);
  const Remedy remedy = expect_remedy(diagnosis, "length-buckets");
  EXPECT_EQ(remedy.set, "train_sampling_strategy=\"group_by_length\"");
  EXPECT_THAT(caveats_of(remedy), HasSubstr("at step 1 instead of hour 3"));
  EXPECT_EQ(remedy.kind, "data-order");
}

TEST(Batch, ALeakIsNoMatterOfSettings) {
  Case incident;
  incident.messages.push_back(cuda_message(0.1, 0.05, 22, 0.3, 23.6));
  incident.growth.kind = GrowthKind::leak;
  incident.growth.evidence = {"12 MiB more per step over 900 steps"};
  const Diagnosis diagnosis = diagnose(incident);
  ASSERT_NE(cause_of(diagnosis, "leak"), nullptr);
  EXPECT_THAT(cause_of(diagnosis, "leak")->evidence, HasSubstr(".item()"));
  EXPECT_NE(remedy_of(diagnosis, "measure"), nullptr);
}

Case evaluating(System system) {
  Case incident = case_of(training_job(system), "rtx-4090");
  incident.job->evaluation.batch = 64;
  incident.estimate = estimate(*incident.job, *incident.shape, incident.gpu);
  Message message = cuda_message(6, 1, 18, 0.5, 23.6);
  message.phase = "eval";
  message.phase_evidence = "evaluation_loop";
  incident.messages.push_back(message);
  return incident;
}

TEST(Evaluation, HasItsOwnBatchAndItsOwnAccumulation) {
  const Diagnosis diagnosis = diagnose(evaluating(System::hf_trainer));
  EXPECT_NE(cause_of(diagnosis, "evaluation"), nullptr);
  EXPECT_EQ(expect_remedy(diagnosis, "eval-batch").set, "per_device_eval_batch_size=1");
  const Remedy moved = expect_remedy(diagnosis, "eval-accumulation");
  EXPECT_EQ(moved.set, "eval_accumulation_steps=1");
  EXPECT_THAT(caveats_of(moved), HasSubstr("prediction_loss_only"));
  EXPECT_THAT(refusal_of(diagnosis, "no-grad"), HasSubstr("already"));
}

// M4 lists torch.no_grad() and model.eval() together.
TEST(Evaluation, EvalModeDoesNotStopSavingForBackward) {
  const Remedy remedy = expect_remedy(diagnose(evaluating(System::pytorch_script)), "no-grad");
  EXPECT_EQ(remedy.kind, "exact");
  EXPECT_THAT(caveats_of(remedy), HasSubstr("model.eval() does not do this"));
  EXPECT_THAT(remedy.set, Not(HasSubstr("eval()")));
}

TEST(Evaluation, InferenceTakesHalves) {
  Job job;
  job.system = System::pytorch_script;
  job.task = Task::infer;
  job.model = "meta-llama/Llama-3.2-3B";
  job.precision.weights = "float32";
  const Diagnosis diagnosis = diagnose(case_of(job, "rtx-3060"));
  EXPECT_NE(remedy_of(diagnosis, "no-grad"), nullptr);
  const Remedy half = expect_remedy(diagnosis, "half-inference");
  EXPECT_GT(*half.saves_bytes, 5 * kGiB);
  EXPECT_THAT(expect_remedy(diagnosis, "micro-batch").set, HasSubstr("batch_size="));
  EXPECT_EQ(remedy_of(diagnosis, "checkpointing"), nullptr);
}

TEST(Checkpointing, SavesActivationsExactly) {
  const Case incident = case_of(training_job(System::hf_trainer, 8), "a100-40gb");
  const Diagnosis diagnosis = diagnose(incident);
  const Remedy remedy = expect_remedy(diagnosis, "checkpointing");
  EXPECT_EQ(remedy.kind, "exact");
  EXPECT_EQ(remedy.set, "gradient_checkpointing=True, gradient_checkpointing_kwargs={\"use_reentrant\": False}");
  EXPECT_GT(remedy.slowdown, 1.15);
  EXPECT_THAT(caveats_of(remedy), HasSubstr("20 to 30 % slower"));
}

TEST(Checkpointing, DefaultsAreKnown) {
  EXPECT_THAT(refusal_of(diagnose(case_of(training_job(System::trl), "a10")), "checkpointing"),
              HasSubstr("by default"));
  EXPECT_THAT(refusal_of(diagnose(case_of(training_job(System::llamafactory), "a10")), "checkpointing"),
              HasSubstr("by default"));
  Job job = training_job(System::litgpt);
  EXPECT_THAT(refusal_of(diagnose(case_of(job, "a10")), "checkpointing"), HasSubstr("only under FSDP"));
  job.devices.gpus = 4;
  job.parallel.sharding = Sharding::zero3;
  EXPECT_THAT(refusal_of(diagnose(case_of(job, "a10")), "checkpointing"), HasSubstr("by itself under FSDP"));
}

TEST(Checkpointing, AFrozenBaseNeedsCare) {
  Job job = training_job(System::hf_trainer);
  job.lora = LoraSettings{};
  EXPECT_THAT(caveats_of(expect_remedy(diagnose(case_of(job, "rtx-3060")), "checkpointing")),
              HasSubstr("use_reentrant=False"));
}

}  // namespace
}  // namespace headroom::doctor
