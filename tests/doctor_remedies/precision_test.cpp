// Fewer bits per number, on GPUs with and without the units for them.
#include "incidents.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;
using testing::Not;

Diagnosis on(const std::string& gpu, System system = System::hf_trainer, int64_t batch = 32) {
  return diagnose(case_of(training_job(system, batch), gpu));
}

TEST(Precision, AmpereTakesBfloat16) {
  const Remedy remedy = expect_remedy(on("a100-40gb"), "mixed-precision");
  EXPECT_EQ(remedy.set, "bf16=True");
  EXPECT_LT(remedy.slowdown, 1);
  EXPECT_EQ(remedy.kind, "lossy");
}

TEST(Precision, VoltaAndTuringHaveNoBfloat16) {
  for (const char* gpu : {"v100-32gb", "t4"}) {
    const Remedy remedy = expect_remedy(on(gpu), "mixed-precision");
    EXPECT_EQ(remedy.set, "fp16=True") << gpu;
    EXPECT_THAT(caveats_of(remedy), HasSubstr("no bf16 units"));
    EXPECT_LT(remedy.slowdown, 1) << gpu << " has half-precision tensor cores";
  }
}

// M0: on a 1080 this saves bytes but no time.
TEST(Precision, Gtx1080SavesBytesAndGivesNoSpeed) {
  const Remedy remedy = expect_remedy(on("gtx-1080"), "mixed-precision");
  EXPECT_EQ(remedy.set, "fp16=True");
  ASSERT_TRUE(remedy.saves_bytes);
  EXPECT_GT(*remedy.saves_bytes, 0);
  EXPECT_GT(remedy.slowdown, 1);
  EXPECT_THAT(caveats_of(remedy), HasSubstr("saves bytes, gives no speed"));
  // A P100 of the same generation has fast halves.
  EXPECT_LT(expect_remedy(on("p100-16gb"), "mixed-precision").slowdown, 1);
}

// With M1's small batch, the 16-bit copies of the weights are larger than the saving in activations.
TEST(Precision, MixedPrecisionCostsMoreAtASmallBatch) {
  Job job = training_job(System::hf_trainer, 1, 128);
  job.batch.accumulation = 4;
  job.compute.checkpointing = true;
  const Diagnosis diagnosis = diagnose(case_of(job, "a100-40gb"));
  EXPECT_EQ(remedy_of(diagnosis, "mixed-precision"), nullptr);
  EXPECT_THAT(refusal_of(diagnosis, "mixed-precision"), HasSubstr("would take"));
  EXPECT_THAT(refusal_of(diagnosis, "mixed-precision"), HasSubstr("so small a batch"));
}

TEST(Precision, TrueHalvesHalveAndWarn) {
  Job job = training_job(System::litgpt);
  job.precision.autocast = "float16";
  const Remedy bf16 = expect_remedy(diagnose(case_of(job, "a100-40gb")), "half-weights");
  EXPECT_EQ(bf16.set, "--precision bf16-true");
  EXPECT_THAT(caveats_of(bf16), HasSubstr("small updates round away"));
  EXPECT_THAT(caveats_of(bf16), Not(HasSubstr("NaN")));
  const Remedy fp16 = expect_remedy(diagnose(case_of(job, "v100-32gb")), "half-weights");
  EXPECT_EQ(fp16.set, "--precision 16-true");
  EXPECT_THAT(caveats_of(fp16), HasSubstr("often ends in NaN"));
  EXPECT_GT(fp16.cost, bf16.cost);
}

TEST(Precision, TrueFloat16InTheJobIsWarnedOf) {
  Job job = training_job(System::litgpt);
  job.precision.weights = "float16";
  EXPECT_THAT(notes_of(diagnose(case_of(job, "v100-32gb"))), HasSubstr("often end in NaN"));
  // DeepSpeed's fp16 has master weights and a loss scale.
  job.system = System::neox;
  EXPECT_THAT(notes_of(diagnose(case_of(job, "v100-32gb"))), Not(HasSubstr("NaN")));
}

TEST(Precision, Bfloat16OnAGpuWithoutItIsNoted) {
  Job job = training_job(System::hf_trainer);
  job.precision.autocast = "bfloat16";
  EXPECT_THAT(notes_of(diagnose(case_of(job, "v100-16gb"))), HasSubstr("V100-16GB has no bf16 units"));
  EXPECT_THAT(notes_of(diagnose(case_of(job, "a100-40gb"))), Not(HasSubstr("bf16")));
  // TRL sets it by default.
  EXPECT_THAT(notes_of(diagnose(case_of(training_job(System::trl), "t4"))), HasSubstr("this system's default"));
}

TEST(Precision, DeepspeedKeepsMasters) {
  Job job = training_job(System::deepspeed);
  job.parallel.sharding = Sharding::zero2;
  const Diagnosis diagnosis = diagnose(case_of(job, "a100-40gb"));
  EXPECT_EQ(remedy_of(diagnosis, "half-weights"), nullptr);
  EXPECT_THAT(refusal_of(diagnosis, "half-weights"), HasSubstr("float32 masters"));
  const Remedy mixed = expect_remedy(diagnosis, "mixed-precision");
  EXPECT_EQ(mixed.set, "\"bf16\": {\"enabled\": true}");
  EXPECT_THAT(mixed.effect, HasSubstr("32-bit copies"));
}

TEST(Precision, OnAlreadyIsRefused) {
  Job job = training_job(System::hf_trainer);
  job.precision.autocast = "bfloat16";
  EXPECT_THAT(refusal_of(diagnose(case_of(job, "a100-40gb")), "mixed-precision"), HasSubstr("on already"));
  EXPECT_THAT(refusal_of(on("a100-40gb", System::trl), "mixed-precision"), HasSubstr("by default"));
  job.precision.weights = "bfloat16";
  EXPECT_THAT(refusal_of(diagnose(case_of(job, "a100-40gb")), "half-weights"), HasSubstr("16 bits"));
}

// M4: flash-attention is not available on V100s; another kernel of sdpa saves the same bytes.
TEST(Precision, FlashAttentionNotOnVolta) {
  Job job = training_job(System::hf_trainer);
  job.compute.attention = "eager";
  const Remedy volta = expect_remedy(diagnose(case_of(job, "v100-32gb")), "flash-attention");
  EXPECT_THAT(volta.set, HasSubstr("sdpa"));
  EXPECT_THAT(caveats_of(volta), HasSubstr("flash_attention_2 is not available on V100-32GB"));
  EXPECT_THAT(caveats_of(expect_remedy(diagnose(case_of(job, "a100-40gb")), "flash-attention")),
              HasSubstr("needs no package"));
  job.compute.attention = "flash_attention_2";
  EXPECT_THAT(notes_of(diagnose(case_of(job, "v100-32gb"))), HasSubstr("does not run on V100-32GB"));
  EXPECT_THAT(refusal_of(diagnose(case_of(job, "a100-40gb")), "flash-attention"), HasSubstr("on already"));
  job.compute.attention.reset();
  EXPECT_THAT(refusal_of(diagnose(case_of(job, "a100-40gb")), "flash-attention"), HasSubstr("default already"));
}

TEST(Precision, QuantisedBasesNeedCuda) {
  EXPECT_THAT(refusal_of(on("mi210"), "qlora"), HasSubstr("CUDA"));
  EXPECT_THAT(expect_remedy(on("t4"), "qlora").set, HasSubstr("bnb_4bit_compute_dtype=torch.float16"));
  EXPECT_THAT(expect_remedy(on("l4"), "qlora").set, HasSubstr("bnb_4bit_compute_dtype=torch.bfloat16"));
}

TEST(Precision, TritonNeedsVolta) {
  EXPECT_THAT(refusal_of(on("gtx-1080"), "liger"), HasSubstr("7.0"));
  EXPECT_NE(remedy_of(on("t4"), "liger"), nullptr);
}

TEST(Precision, QatTakesMoreNotLess) {
  Job job = training_job(System::torchtune);
  job.precision.fake_quantised = true;
  EXPECT_THAT(expect_remedy(diagnose(case_of(job, "a100-40gb")), "no-qat").why,
              HasSubstr("takes more memory, not less"));
  EXPECT_THAT(refusal_of(on("a100-40gb"), "quantized-model"), HasSubstr("inference, not training"));
}

}  // namespace
}  // namespace headroom::doctor
