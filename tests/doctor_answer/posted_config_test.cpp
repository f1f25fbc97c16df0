// Configurations that a post quotes: what of them the answer uses, and when it uses none.
#include "doctor/answer/posted_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "doctor/answer/answer.h"
#include "doctor/output/screen.h"

namespace headroom::doctor {
namespace {

const std::string kFull =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 18.00 MiB. GPU 0 has a total capacity of 23.64 GiB "
    "of which 9.12 MiB is free. Including non-PyTorch memory, this process has 23.62 GiB memory in use. Of the "
    "allocated memory 23.12 GiB is allocated by PyTorch, and 45.00 MiB is reserved by PyTorch but unallocated.\n";
const std::string kAxolotl =
    "base_model: mistralai/Mistral-7B-v0.1\nload_in_4bit: true\nadapter: qlora\nlora_r: 32\nsequence_len: 4096\n"
    "micro_batch_size: 4\noptimizer: adamw_bnb_8bit\ngradient_checkpointing: true\nbf16: auto\n";
const std::string kArguments =
    "args = TrainingArguments(output_dir=\"o\", per_device_train_batch_size=4, gradient_checkpointing=True,\n"
    "                         optim=\"adafactor\", bf16=True)\n";

std::string fenced(const std::string& text) { return "```\n" + text + "```\n"; }

Answer post(const std::string& text) {
  Request request;
  request.inputs = {"-"};
  std::istringstream stream(text);
  return answer(request, stream);
}

PostedConfig read(const std::string& text) { return posted_config(scan_log(text)); }

const Remedy* remedy(const Answer& a, const std::string& name) {
  for (const Remedy& each : a.report.diagnosis.remedies)
    if (each.name == name) return &each;
  return nullptr;
}

TEST(PostedConfig, YamlIsReadAsTheFileWouldBe) {
  const PostedConfig quoted = read("My config\n" + fenced(kAxolotl) + kFull);
  ASSERT_TRUE(quoted.config);
  EXPECT_TRUE(quoted.whole);
  const Job given = read_config_text("a.yml", kAxolotl).job;
  const Job& job = quoted.config->job;
  EXPECT_EQ(job.system, System::axolotl);
  EXPECT_EQ(job.model, given.model);
  EXPECT_EQ(job.batch.micro, given.batch.micro);
  EXPECT_EQ(job.precision.quantization, given.precision.quantization);
  EXPECT_EQ(job.keys.understood.size(), given.keys.understood.size());
  EXPECT_EQ(job.keys.origins.at("micro_batch").file, "the YAML in the text (line 3)");
  EXPECT_EQ(job.keys.origins.at("micro_batch").line, 8);
}

TEST(PostedConfig, TheAnswerUsesItsValues) {
  const Answer a = post("My config\n" + fenced(kAxolotl) + kFull);
  ASSERT_TRUE(a.report.incident.estimate);
  const Remedy* batch = remedy(a, "micro-batch");
  ASSERT_TRUE(batch);
  EXPECT_NE(batch->set.find("micro_batch_size: "), std::string::npos) << batch->set;
  EXPECT_NE(batch->why.find("instead of 4"), std::string::npos) << batch->why;
  for (const char* in_force : {"checkpointing", "qlora", "lora", "optimizer-8bit"})
    EXPECT_FALSE(remedy(a, in_force)) << in_force;
  EXPECT_NE(screen(a.report).find("FROM  the YAML in the text (line 3): base_model"), std::string::npos)
      << screen(a.report);
}

TEST(PostedConfig, NothingIsProvenByAQuotation) {
  const Answer a = post(fenced(kAxolotl) + "Will it fit?\n" + kFull);
  EXPECT_TRUE(a.report.diagnosis.smallest_fitting_set.empty());
  for (const Remedy& each : a.report.diagnosis.remedies) EXPECT_FALSE(each.fits_alone) << each.name;
  EXPECT_NE(a.report.diagnosis.doubt.find("quote"), std::string::npos) << a.report.diagnosis.doubt;
}

TEST(PostedConfig, WithoutFencesAndBesideProse) {
  const PostedConfig quoted = read("note: my configuration\n" + kAxolotl + "error: it fails\n\n" + kFull);
  ASSERT_TRUE(quoted.config);
  EXPECT_EQ(quoted.config->job.model, "mistralai/Mistral-7B-v0.1");
  EXPECT_TRUE(quoted.config->job.keys.unknown.empty());
}

TEST(PostedConfig, TwoVersionsContradictEachOther) {
  std::string other = kAxolotl;
  other.replace(other.find("micro_batch_size: 4"), 19, "micro_batch_size: 2");
  const std::string both = "A:\n" + fenced(kAxolotl) + "B:\n" + fenced(other) + kFull;
  EXPECT_FALSE(read(both).config);
  EXPECT_FALSE(read("A:\n" + fenced(kAxolotl) + "B:\n" + fenced(kAxolotl + "flash_attention: true\n") + kFull).config);
  EXPECT_TRUE(read("A:\n" + fenced(kAxolotl) + "B:\n" + fenced(kAxolotl) + kFull).config) << "the same twice";
  const Answer a = post(both);
  EXPECT_FALSE(a.report.incident.job);
  EXPECT_EQ(screen(a.report).find("FROM"), std::string::npos);
}

TEST(PostedConfig, TwoCallsThatDifferContradictEachOther) {
  EXPECT_FALSE(read(kArguments + "B:\nargs = TrainingArguments(output_dir=\"o\", bf16=True)\n" + kFull).config);
  EXPECT_TRUE(read(kArguments + "B:\n" + kArguments + kFull).config);
}

TEST(PostedConfig, TwoSystemsAreTwoRuns) { EXPECT_FALSE(read(fenced(kAxolotl) + "B:\n" + kArguments + kFull).config); }

TEST(PostedConfig, OneCallIsAPartOfAJob) {
  const PostedConfig quoted = read(kArguments + kFull);
  ASSERT_TRUE(quoted.config);
  EXPECT_FALSE(quoted.whole);
  const Answer a = post(kArguments + kFull);
  EXPECT_FALSE(a.report.incident.job);
  EXPECT_FALSE(a.report.incident.estimate);
  const Remedy* batch = remedy(a, "micro-batch");
  ASSERT_TRUE(batch);
  EXPECT_NE(batch->set.find("per_device_train_batch_size="), std::string::npos) << batch->set;
  EXPECT_NE(batch->why.find("instead of 4"), std::string::npos) << batch->why;
  EXPECT_FALSE(remedy(a, "checkpointing"));
  EXPECT_FALSE(remedy(a, "adafactor"));
}

TEST(PostedConfig, WhatAPartLeavesOpenHasNoDefault) {
  const Answer a = post("args = TrainingArguments(output_dir=\"o\", bf16=True)\n" + kFull);
  const Remedy* batch = remedy(a, "micro-batch");
  ASSERT_TRUE(batch);
  EXPECT_NE(batch->set.find("<half>"), std::string::npos) << batch->set << ": 8 is only the usual value";
}

TEST(PostedConfig, AShardedJobNeedsItsDevicesForAnEstimate) {
  const std::string yaml =
      "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: full\ntemplate: qwen\ncutoff_len: 8192\n"
      "per_device_train_batch_size: 2\ndeepspeed: ds_z3_config.json\n";
  const Answer a = post(fenced(yaml) + kFull);
  EXPECT_FALSE(a.report.incident.estimate);
  EXPECT_FALSE(remedy(a, "shard"));
  EXPECT_FALSE(remedy(a, "checkpointing")) << "LLaMA-Factory has it on by default";
  ASSERT_TRUE(remedy(a, "sequence-length"));
  EXPECT_EQ(remedy(a, "sequence-length")->set, "cutoff_len: 4096");
}

TEST(PostedConfig, DeepSpeedsFileTellsTheStage) {
  const std::string json =
      "{\n  \"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": \"cpu\"}},\n"
      "  \"train_micro_batch_size_per_gpu\": \"auto\"\n}\n";
  const PostedConfig quoted = read("ds_config.json:\n" + json + kFull);
  ASSERT_TRUE(quoted.config);
  EXPECT_FALSE(quoted.whole);
  const Answer a = post("ds_config.json:\n" + json + kFull);
  EXPECT_FALSE(remedy(a, "shard-more"));
  EXPECT_FALSE(remedy(a, "offload-optimizer"));
}

TEST(PostedConfig, AScriptWithItsModelIsWhole) {
  const std::string script =
      "model_id = \"meta-llama/Llama-2-7b-hf\"\nmodel = AutoModelForCausalLM.from_pretrained(model_id)\n";
  const PostedConfig quoted = read(script + kArguments + kFull);
  ASSERT_TRUE(quoted.config);
  EXPECT_TRUE(quoted.whole);
  EXPECT_EQ(quoted.config->job.model, "meta-llama/Llama-2-7b-hf");
  EXPECT_FALSE(
      read(script + "args = TrainingArguments(output_dir=\"o\", per_device_train_batch_size=rows)\n" + kFull).whole)
      << "a value that is computed";
  EXPECT_FALSE(read(script + kFull).whole) << "it may train or predict";
}

TEST(PostedConfig, AdaptersThatThePostNamesAreCounted) {
  const std::string script = "model = AutoModelForCausalLM.from_pretrained(\"meta-llama/Llama-2-7b-hf\")\n";
  const Answer a = post("I fine-tune Llama 2 with LoRA.\n" + script + kArguments + kFull);
  ASSERT_TRUE(a.report.incident.job);
  EXPECT_TRUE(a.report.incident.job->lora);
}

TEST(PostedConfig, WeightsThatCannotHaveBeenLoadedAreNotBelieved) {
  const std::string script = "model = AutoModelForCausalLM.from_pretrained(\"meta-llama/Llama-2-13b-hf\")\n";
  const std::string frames =
      "Traceback (most recent call last):\n  File \"/site-packages/transformers/trainer.py\", line 2000, in "
      "training_step\n    loss.backward()\n";
  const Answer a = post(script + kArguments + frames + kFull);
  EXPECT_FALSE(a.report.incident.estimate) << "48 GiB of weights in 23 GiB: something is not quoted";
  EXPECT_FALSE(a.report.incident.job);
}

TEST(PostedConfig, WhatIsCutGivesNoEstimate) {
  const PostedConfig quoted = read(fenced(kAxolotl + "...\n" + "num_epochs: 3\n") + kFull);
  ASSERT_TRUE(quoted.config);
  EXPECT_FALSE(quoted.whole);
}

TEST(PostedConfig, TheFileThatACommandNamesIsTheQuotedOne) {
  const PostedConfig quoted = read("$ axolotl train my.yml --debug\n" + fenced(kAxolotl) + kFull);
  ASSERT_TRUE(quoted.config);
  EXPECT_TRUE(quoted.command);
  EXPECT_TRUE(quoted.missing.empty());
  EXPECT_EQ(quoted.config->job.batch.micro, 4);
  EXPECT_EQ(read("$ axolotl train my.yml --debug\n" + kFull).missing, std::vector<std::string>{"my.yml"});
}

TEST(PostedConfig, AServersCommandIsNotATrainingsQuotation) {
  const PostedConfig posted = read("$ vllm serve Qwen/Qwen2.5-7B --max-model-len 4096\n" + kArguments + kFull);
  ASSERT_TRUE(posted.config);
  EXPECT_EQ(posted.config->job.system, System::vllm);
  EXPECT_FALSE(posted.quoted);
}

TEST(PostedConfig, OtherFrameworksMessagesLeaveItOut) {
  EXPECT_FALSE(read(kArguments + "2023-01-01 tensorflow/core/framework/op_kernel.cc OOM when allocating tensor with "
                                 "shape[64,512,512] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by "
                                 "allocator GPU_0_bfc\n")
                   .config);
}

TEST(PostedConfig, ProseAndReportsAreNone) {
  for (const char* text :
       {"os: linux\npython: 3.10\ntorch: 2.1\ngpu: 4090\n", "epoch: 1\nloss: 0.5\nlearning_rate: 1e-5\ngrad_norm: 3\n",
        "error: it fails\nnote: with batch_size: 2\n", "learning_rate: 1e-5\nmax_steps: 10\n"})
    EXPECT_FALSE(read(text + kFull).config) << text;
}

TEST(PostedConfig, AContainersCommand) {
  const PostedConfig quoted = read(
      "services:\n  llm:\n    image: vllm/vllm-openai:v0.8.0\n    command: [\"--model\", \"Qwen/Qwen2.5-7B\", "
      "\"--max-model-len\", \"8192\"]\n\n" +
      kFull);
  ASSERT_TRUE(quoted.config);
  EXPECT_EQ(quoted.config->job.system, System::vllm);
  EXPECT_EQ(quoted.config->job.serving.max_model_len, 8192);
}

}  // namespace
}  // namespace headroom::doctor
