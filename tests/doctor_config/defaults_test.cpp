#include "doctor/config/defaults.h"

#include "expect_config.h"

namespace headroom::doctor {
namespace {

TEST(Defaults, OfSystems) {
  EXPECT_EQ(system_defaults(System::hf_trainer).micro_batch.value, 8);
  EXPECT_EQ(system_defaults(System::hf_trainer).checkpointing.value, false);
  EXPECT_EQ(system_defaults(System::trl).checkpointing.value, true);
  EXPECT_EQ(system_defaults(System::trl).sequence.value, 1024);
  EXPECT_EQ(system_defaults(System::oumi).micro_batch.value, 8);
  EXPECT_EQ(system_defaults(System::axolotl).sequence.value, 512);
  EXPECT_EQ(system_defaults(System::llamafactory).sequence.value, 2048);
  EXPECT_EQ(system_defaults(System::litgpt).micro_batch.value, 1);
  EXPECT_EQ(system_defaults(System::vllm).gpu_memory_utilization.value, 0.92);
  EXPECT_EQ(system_defaults(System::vllm).kv_block_size.value, 16);
  EXPECT_FALSE(system_defaults(System::sglang).gpu_memory_utilization.value);
}

TEST(Defaults, HaveSources) {
  for (int i = 0; i <= static_cast<int>(System::pytorch_script); ++i) {
    const SystemDefaults d = system_defaults(static_cast<System>(i));
    EXPECT_TRUE(!d.micro_batch.value || !d.micro_batch.source.empty());
    EXPECT_TRUE(!d.weight_dtype.value || !d.weight_dtype.source.empty());
    EXPECT_TRUE(!d.gpu_memory_utilization.value || !d.gpu_memory_utilization.source.empty());
    EXPECT_TRUE(!d.eager.value || !d.eager.source.empty());
    EXPECT_TRUE(!d.checkpointing.value || !d.checkpointing.source.empty());
  }
}

TEST(Defaults, OfJobs) {
  const Job pretrain = job_of("cmd", "litgpt pretrain pythia-160m --precision bf16-true");
  EXPECT_EQ(effective_micro_batch(pretrain), 4);
  EXPECT_EQ(job_defaults(pretrain).global_batch.value, 512);
  EXPECT_EQ(effective_micro_batch(job_of("cmd", "litgpt finetune_lora m/x --train.global_batch_size 64")), 1);
  const Job ds =
      job_of("d.json",
             "{\"train_batch_size\": 64, \"gradient_accumulation_steps\": 2, \"zero_optimization\": {\"stage\": 1}}");
  EXPECT_EQ(effective_micro_batch(ds), 32);
  EXPECT_EQ(effective_micro_batch(job_of("cmd", "python train.py --model_name_or_path m/x --bf16")), 8);
  EXPECT_FALSE(effective_sequence(job_of("cmd", "python train.py --model_name_or_path m/x --bf16")));
  EXPECT_EQ(effective_sequence(job_of("cmd", "trl sft --model_name_or_path m/x --dataset_name d")), 1024);
}

}  // namespace
}  // namespace headroom::doctor
