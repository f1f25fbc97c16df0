#include "doctor/config/spelling.h"

#include "expect_config.h"

namespace headroom::doctor {
namespace {

std::string text_of(const Job& job, const char* field, const char* value, SourceKind style) {
  const std::optional<Spelling> spelling = spelling_of(job, field, value, style);
  return spelling ? spelling->text : "-";
}

TEST(Spelling, WhereTheJobStatesIt) {
  const Job job = job_of("o.yaml", "model: {model_name: m/x}\ntraining:\n  per_device_train_batch_size: 4\n");
  const auto spelling = spelling_of(job, "micro_batch", "1", SourceKind::yaml);
  ASSERT_TRUE(spelling);
  EXPECT_EQ(spelling->file, "o.yaml");
  EXPECT_EQ(spelling->edit.line, 3);
  EXPECT_EQ(spelling->text, "training.per_device_train_batch_size: 1");
}

TEST(Spelling, InTheSystemsWords) {
  const Job oumi = job_of("o.yaml", "model: {model_name: m/x}\ntraining: {max_steps: 1}\n");
  EXPECT_EQ(text_of(oumi, "checkpointing", "true", SourceKind::yaml), "training.enable_gradient_checkpointing: true");
  EXPECT_EQ(text_of(oumi, "backward_prefetch", "false", SourceKind::yaml), "fsdp.backward_prefetch: NO_PREFETCH");
  EXPECT_EQ(text_of(oumi, "kv_dtype", "fp8", SourceKind::yaml), "-");
  const Job hf = job_of("cmd", "python train.py --model_name_or_path m/x --output_dir o");
  EXPECT_EQ(text_of(hf, "optimizer", "adamw_8bit", SourceKind::command), "--optim adamw_bnb_8bit");
  EXPECT_EQ(text_of(hf, "optimizer", "adamw_8bit", SourceKind::python), "optim=adamw_bnb_8bit");
  EXPECT_EQ(text_of(hf, "autocast", "bfloat16", SourceKind::python), "bf16=True");
  const Job tune =
      job_of("t.yaml", "model:\n  _component_: torchtune.models.llama3_2.lora_llama3_2_1b\nbatch_size: 2\n");
  EXPECT_EQ(text_of(tune, "optimizer", "paged_adamw_8bit", SourceKind::yaml),
            "optimizer._component_: bitsandbytes.optim.PagedAdamW8bit");
  EXPECT_EQ(text_of(tune, "micro_batch", "1", SourceKind::yaml), "batch_size: 1");
  const Job vllm = job_of("cmd", "vllm serve m/x --max-model-len 4096");
  EXPECT_EQ(text_of(vllm, "eager", "true", SourceKind::command), "--enforce-eager");
  EXPECT_EQ(text_of(vllm, "max_model_len", "2048", SourceKind::command), "--max-model-len 2048");
  EXPECT_EQ(text_of(job_of("cmd", "litgpt finetune_lora m/x --train.epochs 1"), "weight_dtype", "bfloat16",
                    SourceKind::command),
            "--precision bf16-true");
  EXPECT_EQ(text_of(job_of("a.yml", "base_model: m/x\nsequence_len: 5\nadapter: lora\n"), "micro_batch", "1",
                    SourceKind::yaml),
            "micro_batch_size: 1");
}

TEST(Spelling, KeysThatSaySeveralThings) {
  const Job job = job_of("cmd", "python train.py --model_name_or_path m/x --fsdp \"full_shard offload\" --fp16");
  EXPECT_FALSE(spelling_of(job, "sharding", "zero2", SourceKind::command));
  EXPECT_FALSE(spelling_of(job, "autocast", "bfloat16", SourceKind::command));
}

// The spelling can be applied to the text and reads back as the value.
TEST(Spelling, AppliesToTheText) {
  const std::string text = "base_model: m/x\nsequence_len: 4096  # tokens\nmicro_batch_size: 8\nadapter:\n";
  const Job job = job_of("a.yml", text);
  std::vector<Edit> edits;
  for (const auto& [field, value] : {std::pair("micro_batch", "1"), std::pair("sequence", "512"),
                                     std::pair("checkpointing", "true"), std::pair("optimizer", "paged_adamw_8bit")})
    edits.push_back(spelling_of(job, field, value, SourceKind::yaml)->edit);
  const Job after = job_of("a.yml", patch_config("a.yml", SourceKind::yaml, text, edits).text);
  EXPECT_EQ(after.batch.micro, 1);
  EXPECT_EQ(after.batch.sequence, 512);
  EXPECT_EQ(after.compute.checkpointing, true);
  EXPECT_EQ(after.optimizer.name, "paged_adamw_8bit");
}

}  // namespace
}  // namespace headroom::doctor
