// Estimates against sums computed by hand, and relations that must hold for any job.
#include <gtest/gtest.h>

#include "doctor/model/estimate.h"

namespace headroom::doctor {
namespace {

Job pure_bf16(int64_t batch, int64_t sequence) {
  Job job;
  job.system = System::pytorch_script;
  job.precision.weights = "bfloat16";
  job.batch.micro = batch;
  job.batch.sequence = sequence;
  job.compute.attention = "flash_attention_2";
  job.compute.checkpointing = false;
  job.optimizer.name = "adamw_fused";
  return job;
}

double term(const Estimate& e, const std::string& name) {
  double sum = 0;
  for (const Term& t : e.terms)
    if (t.name == name) sum += static_cast<double>(t.bytes);
  return sum;
}

const ModelShape& llama8b() {
  static const ModelShape shape = *find_model_shape("llama-3.1-8b");
  return shape;
}

TEST(Estimate, PureBfloat16ByHand) {
  const Estimate e = estimate(pure_bf16(1, 4096), llama8b(), find_gpu("H100"));
  EXPECT_EQ(term(e, "weights"), 8030261248.0 * 2);
  EXPECT_EQ(term(e, "optimizer states"), 8030261248.0 * 4);
  // A layer, per token: two RMSNorms (float32 input and its normalised 16-bit copy), the inputs of q, k, v and of gate
  // and up; q, k, v, output and the log-sum-exp; gate, its activation, up and their product.
  const double layer = 2 * 4096 * (4 + 2) + 2 * 4096 * 2 + (4096 + 1024 + 1024 + 4096) * 2 + 32 * 4 + 4 * 14336 * 2;
  EXPECT_NEAR(term(e, "activations"), 4096 * (32 * layer + 4096 * 6), 1);
  EXPECT_EQ(term(e, "logits"), 4096.0 * 128256 * 14);  // logits 2, log-softmax 4, two gradients of 4
  EXPECT_EQ(e.peak_phase, "backward");
}

TEST(Estimate, OptimizerStepIsThePeakOfATinyBatch) {
  Job job = pure_bf16(1, 16);
  const Estimate fused = estimate(job, llama8b(), find_gpu("H100"));
  EXPECT_EQ(term(fused, "gradients"), 8030261248.0 * 2);
  job.optimizer.name = "adamw_torch";
  const Estimate foreach_step = estimate(job, llama8b(), find_gpu("H100"));
  EXPECT_EQ(foreach_step.peak_phase, "optimizer_step");
  EXPECT_EQ(term(foreach_step, "optimizer temporaries"), 8030261248.0 * 2);  // the square roots, all at once
}

TEST(Estimate, StatesByOptimizer) {
  Job job = pure_bf16(1, 16);
  const auto states = [&](const char* optimizer) {
    job.optimizer.name = optimizer;
    return term(estimate(job, llama8b(), find_gpu("H100")), "optimizer states") / 8030261248.0;
  };
  EXPECT_DOUBLE_EQ(states("adamw"), 4);
  EXPECT_DOUBLE_EQ(states("lion"), 2);
  EXPECT_DOUBLE_EQ(states("sgd"), 0);
  EXPECT_DOUBLE_EQ(states("sgd_momentum"), 2);
  EXPECT_NEAR(states("adamw_8bit"), 2 + 2 * 4.0 / 256, 1e-9);
  EXPECT_NEAR(states("ao_adamw_4bit"), 1 + 2 * 4.0 / 128, 1e-9);
  EXPECT_LT(states("adafactor"), 0.01);
  job.precision.weights = "float32";
  EXPECT_DOUBLE_EQ(states("adamw"), 8);
}

TEST(Estimate, EagerScoresByHand) {
  Job job = pure_bf16(2, 1024);
  job.precision.weights = "float32";
  job.batch.accumulation = 2;  // gradients are kept, so both peak at the loss
  job.compute.attention = "sdpa";
  const Estimate fused = estimate(job, llama8b(), find_gpu("H100"));
  job.compute.attention = "eager";
  const Estimate eager = estimate(job, llama8b(), find_gpu("H100"));
  const double scores = 2.0 * 32 * 1024 * 1024 * 4, tokens = 2 * 1024;
  // More: the scores, and keys and values repeated to all heads. Less: no log-sum-exp.
  EXPECT_NEAR(term(eager, "activations") - term(fused, "activations"), 32 * (scores + tokens * (2 * 3072 * 4 - 32 * 4)),
              1);
}

TEST(Estimate, QuantisedBaseByHand) {
  Job job = pure_bf16(1, 512);
  job.lora.emplace();
  job.lora->rank = 16;
  job.precision.quantization = "nf4-dq";
  const ModelShape& s = llama8b();
  const double adapters = 32.0 * 16 * ((4096 + 4096) + (4096 + 1024));
  const Estimate e = estimate(job, s, find_gpu("4090"));
  EXPECT_NEAR(
      term(e, "weights"),
      s.linear_parameters * (0.5 + 1.0 / 64 + 4.0 / 16384) + (s.parameters - s.linear_parameters) * 4 + adapters * 4,
      2);
  EXPECT_NEAR(term(e, "optimizer states"), adapters * 8, 1);
}

TEST(Estimate, ShardingDividesStates) {
  Job job = pure_bf16(1, 512);
  job.devices.gpus = 8;
  job.parallel.sharding = Sharding::zero3;
  const Estimate e = estimate(job, llama8b(), find_gpu("A100-80GB"));
  EXPECT_NEAR(term(e, "weights"), 8030261248.0 * 2 / 8, 1);
  EXPECT_NEAR(term(e, "optimizer states"), 8030261248.0 * 4 / 8, 1);
  EXPECT_GT(term(e, "gathered parameters"), 2 * llama8b().layer_parameters);
  job.parallel.sharding = Sharding::ddp;
  EXPECT_EQ(term(estimate(job, llama8b(), find_gpu("A100-80GB")), "weights"), 8030261248.0 * 2);
  job.system = System::deepspeed;
  job.parallel.sharding = Sharding::zero2;
  job.precision.autocast = "bfloat16";
  const Estimate zero2 = estimate(job, llama8b(), find_gpu("A100-80GB"));
  EXPECT_EQ(term(zero2, "weights"), 8030261248.0 * 2);
  EXPECT_NEAR(term(zero2, "master weights"), 8030261248.0 * 4 / 8, 1);
  EXPECT_NEAR(term(zero2, "optimizer states"), 8030261248.0, 1);
  job.parallel.offload_optimizer = Offload::cpu;
  const Estimate offloaded = estimate(job, llama8b(), find_gpu("A100-80GB"));
  EXPECT_EQ(term(offloaded, "optimizer states"), 0);
  EXPECT_GT(offloaded.host_low_bytes,
            zero2.host_low_bytes + 12'000'000'000);  // masters and states, and pinned gradients
}

TEST(Estimate, TermsSumAndRangesHold) {
  for (const char* model :
       {"gpt2", "bert-large-uncased", "mixtral-8x7b", "t5-3b", "deepseek-v2-lite", "gemma-2-9b", "phi-2"})
    for (const char* gpu : {"cpu", "T4", "H100", "mi300x"})
      for (const bool checkpointing : {false, true}) {
        Job job = pure_bf16(2, 512);
        job.compute.checkpointing = checkpointing;
        const Estimate e = estimate(job, *find_model_shape(model), find_gpu(gpu));
        int64_t sum = 0;
        for (const Term& t : e.terms) {
          EXPECT_GT(t.bytes, 0);
          EXPECT_FALSE(t.how.empty()) << t.name;
          sum += t.bytes;
        }
        EXPECT_EQ(sum, e.likely_bytes) << model;
        EXPECT_LE(e.low_bytes, e.likely_bytes);
        EXPECT_LE(e.likely_bytes, e.high_bytes);
        EXPECT_LE(e.allocated_bytes, e.reserved_bytes);
        EXPECT_LE(e.reserved_bytes, e.likely_bytes);
        EXPECT_LE(e.host_low_bytes, e.host_high_bytes);
      }
}

TEST(Estimate, NeverFallsWithBatchSequenceOrLayers) {
  for (const System system : {System::pytorch_script, System::hf_trainer, System::torchtune, System::litgpt})
    for (const char* attention : {"eager", "sdpa"})
      for (const bool checkpointing : {false, true}) {
        int64_t last_batch = 0, last_sequence = 0, last_layers = 0;
        for (int64_t k = 1; k <= 64; k *= 2) {
          Job job = pure_bf16(k, 256);
          job.system = system;
          job.compute.attention = attention;
          job.compute.checkpointing = checkpointing;
          ModelShape shape = llama8b();
          const int64_t batch = estimate(job, shape, find_gpu("H100")).likely_bytes;
          job.batch.micro = 1;
          job.batch.sequence = 64 * k;
          const int64_t sequence = estimate(job, shape, find_gpu("H100")).likely_bytes;
          shape.layers = k;
          shape.parameters = 1e9 + 2e8 * static_cast<double>(k);
          const int64_t layers = estimate(job, shape, find_gpu("H100")).likely_bytes;
          EXPECT_GE(batch, last_batch);
          EXPECT_GE(sequence, last_sequence);
          EXPECT_GE(layers, last_layers);
          last_batch = batch;
          last_sequence = sequence;
          last_layers = layers;
        }
      }
}

TEST(Estimate, HostileJobsStayInRange) {
  Job job = pure_bf16(INT64_MAX, INT64_MAX);
  job.devices.gpus = INT64_MAX;
  job.devices.nodes = -5;
  job.parallel.tensor = 0;
  job.parallel.sharding = Sharding::zero3;
  job.parallel.buffers["reduce_bucket_size"] = INT64_MAX;
  job.lora.emplace();
  job.lora->rank = INT64_MAX;
  job.lora->targets = {"", ".", "all-linear", "no_such"};
  const Estimate e = estimate(job, guess_model_shape(1e15), std::nullopt);
  EXPECT_GT(e.likely_bytes, 0);
  EXPECT_LE(e.low_bytes, e.high_bytes);
  EXPECT_FALSE(e.assumptions.empty());
  const Estimate empty = estimate(Job{}, ModelShape{}, std::nullopt);
  EXPECT_GE(empty.likely_bytes, 0);
  Job serve;
  serve.task = Task::serve;
  serve.system = System::vllm;
  serve.parallel.tensor = INT64_MAX;
  serve.serving.kv_block_size = INT64_MAX;
  EXPECT_GE(estimate(serve, ModelShape{}, find_gpu("T4")).likely_bytes, 0);
}

TEST(Estimate, DefaultsAreSaid) {
  Job job;
  job.system = System::hf_trainer;
  const Estimate e = estimate(job, llama8b(), find_gpu("A100"));
  bool batch = false;
  for (const std::string& line : e.assumptions) batch = batch || line.find("micro-batch 8") != std::string::npos;
  EXPECT_TRUE(batch);
  EXPECT_TRUE(estimate(job, guess_model_shape(7e9), find_gpu("A100")).high_bytes > e.high_bytes * 0.5);
}

TEST(Serving, TokensOfTheCacheByHand) {
  // Llama-3.1-8B: 32 layers x 8 heads x 128 x 2 x 2 B = 131072 B per token.
  EXPECT_EQ(kv_bytes_per_token(llama8b(), 2), 131072);
  EXPECT_EQ(kv_bytes_per_token(llama8b(), 2, 4), 131072 / 4);
  EXPECT_EQ(kv_bytes_per_token(llama8b(), 2, 16), 131072 / 8);  // a head cannot be split
  EXPECT_EQ(kv_tokens_in(131072.0 * 100, llama8b(), 2), 96);    // whole blocks of 16
  // A server with 2.89 GiB for its cache printed 1478 blocks of 16 tokens.
  EXPECT_NEAR(static_cast<double>(kv_tokens_in(3103113871, llama8b(), 2)), 1478 * 16, 16 * 2);
  // Servers that printed the longest length that their cache can hold: 0.71 GiB (exactly) for 5632 tokens of Llama 3.1
  // 8B, 5.59 GiB for 122080 tokens of 48 layers with 4 heads of 128 in 8 bits.
  const double gib = 1 << 30;
  EXPECT_NEAR(static_cast<double>(kv_tokens_in(0.705 * gib, llama8b(), 2)), 5632, 0.03 * 5632);
  ModelShape coder = llama8b();
  coder.layers = 48, coder.kv_heads = 4, coder.head_dim = 128;
  EXPECT_NEAR(static_cast<double>(kv_tokens_in(5.59 * gib, coder, 1)), 122080, 0.005 * 122080);
  const ModelShape latent = *find_model_shape("deepseek-v2-lite");
  EXPECT_EQ(kv_bytes_per_token(latent, 2, 8), 27 * 576 * 2);
}

TEST(Serving, CacheGrowsWithUtilization) {
  Job job;
  job.task = Task::serve;
  job.system = System::vllm;
  job.serving.max_model_len = 8192;
  int64_t last = 0;
  for (const double share : {0.5, 0.7, 0.9, 0.95}) {
    job.serving.gpu_memory_utilization = share;
    const Estimate e = estimate(job, llama8b(), find_gpu("A100-40GB"));
    EXPECT_GT(*e.kv_tokens, last);
    last = *e.kv_tokens;
  }
  job.serving.kv_dtype = "fp8";
  EXPECT_NEAR(static_cast<double>(*estimate(job, llama8b(), find_gpu("A100-40GB")).kv_tokens),
              2.0 * static_cast<double>(last), 64);
}

}  // namespace
}  // namespace headroom::doctor
