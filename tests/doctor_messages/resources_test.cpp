#include "doctor/messages/resources.h"

#include <gtest/gtest.h>

#include "doctor/messages/log_scanner.h"

namespace headroom::doctor {
namespace {

constexpr int64_t kMi = 1 << 20, kGi = 1 << 30;

TEST(SlurmResources, SacctTable) {
  const LogReport report = scan_log(
      "$ sacct -j 123 -o JobID,State,ReqMem,MaxRSS,AllocCPUS\n"
      "JobID             State     ReqMem     MaxRSS  AllocCPUS \n"
      "------------ ---------- ---------- ---------- ---------- \n"
      "123          OUT_OF_ME+        16G                     8 \n"
      "123.batch    OUT_OF_ME+             16773120K          8 \n"
      "123.0         COMPLETED                 1024K          8 \n\n");
  EXPECT_EQ(report.resources.job.job_id, "123");
  EXPECT_EQ(report.resources.job.state, "OUT_OF_ME+");
  EXPECT_EQ(report.resources.job.memory_requested_bytes, 16 * kGi);
  EXPECT_EQ(report.resources.job.memory_used_bytes, 16773120LL * 1024);
  EXPECT_EQ(report.resources.job.cpus, 8);
}

TEST(SlurmResources, SacctWithBars) {
  const LogReport report = scan_log("JobID|ReqMem|MaxRSS|State\n7|4Gc||FAILED\n7.batch|4Gc|2000M|OUT_OF_MEMORY\n");
  EXPECT_EQ(report.resources.job.memory_requested_per_cpu_bytes, 4 * kGi);
  EXPECT_EQ(report.resources.job.memory_used_bytes, 2000 * kMi);
  EXPECT_EQ(report.resources.job.state, "OUT_OF_MEMORY");
}

TEST(SlurmResources, SeffAndScript) {
  const LogReport report = scan_log(
      "#SBATCH --mem=64G --cpus-per-task=16\n#SBATCH --gres=gpu:a100:4\n"
      "Memory Utilized: 62.50 GB\nMemory Efficiency: 97.66% of 64.00 GB (64.00 GB/node)\n");
  EXPECT_EQ(report.resources.job.memory_requested_bytes, 64 * kGi);
  EXPECT_EQ(report.resources.job.memory_used_bytes, 125 * kGi / 2);
  EXPECT_EQ(report.resources.job.gpus, 4);
  EXPECT_EQ(report.resources.job.cpus, 16);
}

TEST(NvidiaSmi, Table) {
  const LogReport report = scan_log(
      "|   0  NVIDIA A100-SXM4-40GB          On  | 00000000:07:00.0 Off |                    0 |\n"
      "| N/A   45C    P0    70W / 400W |  38000MiB / 40960MiB |    100%      Default |\n"
      "|   1  NVIDIA A100-SXM4-40GB          On  | 00000000:0F:00.0 Off |                    0 |\n"
      "| N/A   33C    P0    50W / 400W |      3MiB / 40960MiB |      0%      Default |\n"
      "|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |\n"
      "|    0   N/A  N/A      4711      C   python3                         37000MiB |\n"
      "|    0   N/A  N/A      4712      C   ...conda/bin/python               990MiB |\n");
  ASSERT_EQ(report.resources.gpus.size(), 2u);
  const GpuUsage& gpu = report.resources.gpus[0];
  EXPECT_EQ(gpu.name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(gpu.used_bytes, 38000 * kMi);
  EXPECT_EQ(gpu.total_bytes, 40960 * kMi);
  ASSERT_EQ(gpu.processes.size(), 2u);
  EXPECT_EQ(gpu.processes[0].pid, 4711);
  EXPECT_EQ(gpu.processes[0].bytes, 37000 * kMi);
  EXPECT_EQ(gpu.processes[1].name, "...conda/bin/python");
  EXPECT_EQ(report.resources.gpus[1].used_bytes, 3 * kMi);
}

TEST(NvidiaSmi, QueryLoopTellsGrowth) {
  std::string log = "index, name, memory.used [MiB], memory.total [MiB]\n";
  for (int i = 0; i < 100; ++i) log += "0, Tesla T4, " + std::to_string(5000 + 40 * i) + " MiB, 15360 MiB\n";
  const LogReport report = scan_log(log);
  ASSERT_EQ(report.resources.gpus.size(), 1u);
  EXPECT_EQ(report.resources.gpus[0].name, "Tesla T4");
  EXPECT_EQ(report.resources.gpus[0].used_bytes, (5000 + 40 * 99) * kMi);
  EXPECT_EQ(report.growth.kind, GrowthKind::leak);
}

TEST(ServerFactsTest, Vllm) {
  const LogReport report = scan_log(
      "INFO 05-01 12:00:00 [gpu_model_runner.py:1329] Model loading took 14.9889 GiB and 5.6 seconds\n"
      "INFO 05-01 12:00:01 [kv_cache_utils.py:634] GPU KV cache size: 23,648 tokens\n"
      "INFO 05-01 12:00:01 [kv_cache_utils.py:637] Maximum concurrency for 8,192 tokens per request: 2.89x\n"
      "INFO 05-01 12:00:01 [gpu_worker.py:227] Available KV cache memory: 2.89 GiB\n"
      "INFO 05-01 12:00:09 [gpu_model_runner.py:1700] Graph capturing finished in 23 secs, took 0.35 GiB\n"
      "INFO worker.py:267] the current vLLM instance can use total_gpu_memory (23.58GiB) x gpu_memory_utilization "
      "(0.90) = "
      "21.22GiB\nINFO # GPU blocks: 1478, # CPU blocks: 2048\n");
  const ServerFacts& facts = report.resources.server;
  EXPECT_EQ(facts.kv_cache_tokens, 23648);
  EXPECT_EQ(facts.max_model_len, 8192);
  EXPECT_DOUBLE_EQ(facts.max_concurrency.value_or(0), 2.89);
  EXPECT_EQ(facts.kv_blocks, 1478);
  EXPECT_DOUBLE_EQ(facts.gpu_memory_utilization.value_or(0), 0.9);
  EXPECT_NEAR(static_cast<double>(facts.weights_bytes.value_or(0)), 14.9889 * kGi, 1e4);
  EXPECT_NEAR(static_cast<double>(facts.graph_bytes.value_or(0)), 0.35 * kGi, 10);
  EXPECT_TRUE(report.messages.empty());
}

}  // namespace
}  // namespace headroom::doctor
