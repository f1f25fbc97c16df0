#include <gtest/gtest.h>

#include <set>

#include "doctor/model/estimate.h"

namespace headroom::doctor {
namespace {

TEST(GpuTable, NamesAreFoundInTheirManySpellings) {
  const std::pair<const char*, const char*> names[] = {{"a100-40gb", "A100-40GB"},
                                                       {"NVIDIA A100-SXM4-80GB", "A100-80GB"},
                                                       {"4090", "RTX-4090"},
                                                       {"NVIDIA GeForce RTX 4090", "RTX-4090"},
                                                       {"rtx4090-24gb", "RTX-4090"},
                                                       {"V100", "V100-16GB"},
                                                       {"Tesla V100-SXM2-32GB", "V100-32GB"},
                                                       {"h100", "H100-80GB"},
                                                       {"NVIDIA H100 80GB HBM3", "H100-80GB"},
                                                       {"Tesla T4", "T4"},
                                                       {"gtx 1080 ti", "GTX-1080-Ti"},
                                                       {"1080", "GTX-1080"},
                                                       {"l40s", "L40S"},
                                                       {"a6000", "RTX-A6000"},
                                                       {"RTX 6000 Ada Generation", "RTX-6000-Ada"},
                                                       {"mi300x", "MI300X"},
                                                       {"cpu", "CPU"},
                                                       {"B200", "B200"}};
  for (const auto& [given, expected] : names) {
    const auto gpu = find_gpu(given);
    ASSERT_TRUE(gpu) << given;
    EXPECT_EQ(gpu->name, expected) << given;
  }
  for (const char* name : {"", "gb", "9999", "tpu", "geforce", "a100-12345gb"}) EXPECT_FALSE(find_gpu(name)) << name;
}

TEST(GpuTable, FactsOfGenerations) {
  EXPECT_FALSE(find_gpu("V100")->bf16);
  EXPECT_FALSE(find_gpu("V100")->flash_attention);
  EXPECT_FALSE(find_gpu("T4")->bf16);
  EXPECT_TRUE(find_gpu("3090")->bf16);
  EXPECT_TRUE(find_gpu("H100")->flash_attention);
  std::set<std::string> names;
  for (const Gpu& gpu : known_gpus()) {
    EXPECT_TRUE(names.insert(gpu.name).second) << gpu.name;
    if (gpu.name == "CPU") continue;
    EXPECT_GT(gpu.memory_bytes, int64_t{5} << 30) << gpu.name;
    EXPECT_GE(gpu.flops_half, gpu.flops_single) << gpu.name;
    EXPECT_GT(gpu.bandwidth, 0) << gpu.name;
  }
}

}  // namespace
}  // namespace headroom::doctor
