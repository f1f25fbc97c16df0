#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "doctor/config/dialects.h"
#include "expect_config.h"

namespace headroom::doctor {
namespace {

namespace fs = std::filesystem;

TEST(Systems, AxolotlQlora) {
  const Job job = job_of("a.yml",
                         "base_model: Qwen/Qwen3-32B\nload_in_4bit: true\nadapter: qlora\nlora_r: 16\nlora_alpha: 32\n"
                         "lora_target_linear: true\nsequence_len: 2048\nmicro_batch_size: 1\nbf16: auto\n"
                         "gradient_checkpointing: offload\noptimizer: adamw_torch_4bit\nflash_attention: true\n"
                         "plugins:\n  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin\n"
                         "fsdp_version: 2\nfsdp_config:\n  offload_params: true\n  reshard_after_forward: false\n"
                         "wandb_project:\nmy_own_key: 3\n");
  EXPECT_EQ(job.system, System::axolotl);
  EXPECT_EQ(job.precision.quantization, "nf4-dq");
  ASSERT_TRUE(job.lora);
  EXPECT_TRUE(job.lora->all_linear);
  EXPECT_EQ(job.lora->alpha, 32);
  EXPECT_EQ(job.compute.checkpointing, true);
  EXPECT_EQ(job.compute.activation_offload, true);
  EXPECT_EQ(job.optimizer.name, "adamw_4bit");
  EXPECT_EQ(job.compute.attention, "flash_attention_2");
  EXPECT_EQ(job.compute.chunked_loss, true);
  EXPECT_EQ(job.parallel.sharding, Sharding::zero2);
  EXPECT_EQ(job.parallel.reshard_after_forward, false);
  EXPECT_EQ(job.parallel.offload_parameters, Offload::cpu);
  ASSERT_EQ(job.keys.unknown.size(), 1u);
  EXPECT_EQ(job.keys.unknown[0].origin.line, 20);
}

TEST(Systems, OumiSharding) {
  const Job job =
      job_of("o.yaml",
             "model:\n  model_name: m/x\n  model_max_length: 8192\n  torch_dtype_str: bfloat16\n"
             "  attn_implementation: flash_attention2\ntraining:\n  use_peft: true\n  gradient_checkpointing: true\n"
             "  per_device_train_batch_size: 4\npeft:\n  q_lora: true\n  lora_r: 64\nfsdp:\n  enable_fsdp: true\n"
             "  sharding_strategy: HYBRID_SHARD\n  backward_prefetch: NO_PREFETCH\n");
  EXPECT_EQ(job.parallel.sharding, Sharding::hybrid);
  EXPECT_EQ(job.parallel.backward_prefetch, false);
  EXPECT_EQ(job.precision.quantization, "fp4");  // Oumi's default
  EXPECT_EQ(job.compute.attention, "flash_attention_2");
  EXPECT_EQ(job.compute.checkpointing, true);
  EXPECT_EQ(job.keys.corrected.size(), 2u);
  const Job off = job_of("o.yaml",
                         "model: {model_name: m/x}\nfsdp: {enable_fsdp: false, sharding_strategy: FULL_SHARD}\n"
                         "peft: {lora_r: 8}\ntraining: {use_peft: false}\n");
  EXPECT_FALSE(off.parallel.sharding);
  EXPECT_FALSE(off.lora);
}

TEST(Systems, DeepSpeedAutoAndOldNames) {
  const ConfigReading reading =
      read_config_text("ds.json",
                       "{\"zero_optimization\": {\"stage\": 2, \"cpu_offload\": true, \"reduce_bucket_size\": 5e8,\n"
                       "\"max_live_parameters\": 1e9}, \"train_micro_batch_size_per_gpu\": \"auto\", \"bf16\": "
                       "{\"enabled\": \"auto\"},\n"
                       "\"bfloat16\": {\"enabled\": true}}");
  expect_all_keys(reading);
  const Job& job = reading.job;
  EXPECT_EQ(job.system, System::deepspeed);
  EXPECT_EQ(job.model, "");
  EXPECT_EQ(job.parallel.sharding, Sharding::zero2);
  EXPECT_EQ(job.parallel.offload_optimizer, Offload::cpu);
  EXPECT_EQ(job.parallel.buffers.at("reduce_bucket_size"), 500'000'000);
  EXPECT_EQ(job.parallel.buffers.at("stage3_max_live_parameters"), 1'000'000'000);
  EXPECT_FALSE(job.batch.micro);
  EXPECT_EQ(job.precision.weights, "bfloat16");
  EXPECT_EQ(job.keys.corrected.size(), 3u);
  EXPECT_TRUE(job.parallel.deepspeed);
}

TEST(Systems, TorchtuneInterpolatesAndNamesTheModel) {
  const Job job = job_of(
      "t.yaml",
      "output_dir: /o\nbatch_size: 4\nbatch_size_val: ${batch_size}\ntokenizer:\n  _component_: t.x\n  max_seq_len: "
      "null\n"
      "model:\n  _component_: torchtune.models.llama3_2.qlora_llama3_2_3b\n  lora_attn_modules: ['q_proj', "
      "output_proj]\n"
      "  apply_lora_to_mlp: True\n  lora_rank: 64\ndtype: bf16\nmetric_logger: {log_dir: \"${output_dir}/logs\"}\n"
      "optimizer:\n  _component_: bitsandbytes.optim.PagedAdamW8bit\nx_y: ${nowhere}\n");
  EXPECT_EQ(job.model, "meta-llama/Llama-3.2-3B-Instruct");
  EXPECT_EQ(job.evaluation.batch, 4);
  EXPECT_EQ(job.precision.quantization, "nf4");
  EXPECT_EQ(job.optimizer.name, "paged_adamw_8bit");
  ASSERT_TRUE(job.lora);
  EXPECT_THAT(job.lora->targets, testing::ElementsAre("q_proj", "o_proj", "gate_proj", "up_proj", "down_proj"));
  EXPECT_FALSE(job.batch.sequence);
  EXPECT_EQ(job.keys.unknown.size(), 1u);
}

TEST(Systems, NeoxStatesItsShape) {
  const Job job =
      job_of("n.yml",
             "{ \"num-layers\": 24, \"hidden-size\": 2048, \"num-attention-heads\": 16, \"seq-length\": 2048,\n"
             "\"no-weight-tying\": true, \"attention-config\": [[[\"flash\"], 24]], # kinds\n"
             "\"train_micro_batch_size_per_gpu\": 16, \"gas\": 2, \"fp16\": {\"enabled\": true},\n"
             "\"zero_optimization\": {\"stage\": 1}, \"checkpoint-activations\": true, }\n");
  EXPECT_EQ(job.system, System::neox);
  EXPECT_EQ(job.compute.attention, "flash_attention_2");
  EXPECT_NEAR(*job.parameters, 1.4146e9, 2e6);  // Pythia-1.4b has 1 414 647 808
  EXPECT_EQ(job.batch.accumulation, 2);
  EXPECT_EQ(job.compute.checkpointing, true);
  EXPECT_EQ(job.precision.weights, "float16");
}

TEST(Systems, PeftAdapterAndModelConfig) {
  const Job job = job_of("adapter_config.json",
                         "{\"peft_type\": \"LORA\", \"base_model_name_or_path\": \"m/x\", \"r\": 4, \"lora_alpha\": 8,"
                         "\"target_modules\": \"all-linear\", \"task_type\": null}");
  EXPECT_EQ(job.model, "m/x");
  ASSERT_TRUE(job.lora);
  EXPECT_EQ(job.lora->rank, 4);
  EXPECT_TRUE(job.lora->all_linear);
  const Job model =
      job_of("config.json", "{\"model_type\": \"llama\", \"hidden_size\": 8, \"architectures\": [\"L\"]}");
  EXPECT_EQ(model.model, "config.json");
}

TEST(Systems, HfJsonWithSections) {
  const Job job =
      job_of("args.json",
             "{\"model_name_or_path\": \"m/x\", \"per_device_train_batch_size\": 2, \"fsdp\": \"full_shard\","
             "\"fsdp_config\": {\"backward_prefetch\": \"backward_pre\", \"fsdp_forward_prefetch\": false,"
             "\"activation_checkpointing\": true}, \"optim\": \"adamw_bnb_8bit\", \"no_cuda\": false}");
  EXPECT_EQ(job.system, System::hf_trainer);
  EXPECT_EQ(job.parallel.sharding, Sharding::zero3);
  EXPECT_EQ(job.parallel.backward_prefetch, true);
  EXPECT_EQ(job.parallel.forward_prefetch, false);
  EXPECT_EQ(job.compute.checkpointing, true);
  EXPECT_EQ(job.optimizer.name, "adamw_8bit");
}

TEST(Systems, EveryRenameLeadsToAKnownKey) {
  const DialectOf kAll[] = {fsdp_dialect,
                            deepspeed_dialect,
                            peft_dialect,
                            bitsandbytes_dialect,
                            script_dialect,
                            hf_trainer_dialect,
                            trl_dialect,
                            accelerate_dialect,
                            litgpt_dialect,
                            oumi_dialect,
                            axolotl_dialect,
                            llamafactory_dialect,
                            llamafactory_v1_dialect,
                            torchtune_dialect,
                            neox_dialect,
                            vllm_dialect,
                            sglang_dialect,
                            llama_server_dialect,
                            tgi_dialect,
                            slurm_dialect,
                            torchrun_dialect,
                            pytorch_dialect};
  for (const DialectOf dialect : kAll) {
    for (const Renamed& renamed : dialect().renamed) {
      EXPECT_NE(renamed.old_key, renamed.key);
      EXPECT_TRUE(knows_key(dialect(), renamed.key))
          << dialect().name << ": " << renamed.old_key << " -> " << renamed.key;
    }
    for (const KeyRule& rule : dialect().rules) EXPECT_FALSE(rule.field.empty()) << rule.key;
    for (const Irrelevant& group : dialect().irrelevant) EXPECT_FALSE(group.why.empty());
  }
}

TEST(Systems, SeveralFilesMerge) {
  ConfigInput input;
  input.texts = {
      {"train.sh",
       "accelerate launch --config_file acc.yaml train.py --model_name_or_path m/x --per_device_train_batch_size 2 "
       "--bf16"},
      {"acc.yaml",
       "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nmixed_precision: fp16\nnum_processes: 4\n"
       "deepspeed_config:\n  zero_stage: 2\n"},
      {"ds.json", "{\"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": \"cpu\"}}}"}};
  const ConfigReading reading = read_config(input);
  expect_all_keys(reading);
  EXPECT_EQ(reading.job.system, System::hf_trainer);
  EXPECT_EQ(reading.job.devices.gpus, 4);
  EXPECT_EQ(reading.job.precision.autocast, "bfloat16");  // TrainingArguments override Accelerate
  EXPECT_EQ(reading.job.parallel.sharding, Sharding::zero3);
  EXPECT_EQ(reading.job.parallel.offload_optimizer, Offload::cpu);
  EXPECT_EQ(reading.job.keys.conflicts.size(), 2u);
  EXPECT_EQ(reading.sources.size(), 3u);
}

TEST(Systems, ReferredFilesAreReadBelowTheFolderOnly) {
  const fs::path folder = fs::temp_directory_path() / ("headroom-config-" + std::to_string(::getpid()));
  fs::create_directories(folder / "inner" / "ds");
  std::ofstream(folder / "inner" / "ds" / "z3.json") << "{\"zero_optimization\": {\"stage\": 3}}";
  std::ofstream(folder / "secret.json") << "{\"zero_optimization\": {\"stage\": 1}}";
  std::ofstream(folder / "inner" / "a.yml") << "base_model: m/x\nsequence_len: 1\nadapter:\ndeepspeed: ds/z3.json\n";
  std::ofstream(folder / "inner" / "b.yml")
      << "base_model: m/x\nsequence_len: 1\nadapter:\ndeepspeed: ../secret.json\n";
  const ConfigReading a = read_config_file(folder / "inner" / "a.yml");
  EXPECT_EQ(a.job.parallel.sharding, Sharding::zero3);
  EXPECT_EQ(a.sources.size(), 2u);
  const ConfigReading b = read_config_file(folder / "inner" / "b.yml");
  EXPECT_FALSE(b.job.parallel.sharding);
  ASSERT_EQ(b.notes.size(), 1u);
  EXPECT_THAT(b.notes[0], testing::HasSubstr("../secret.json"));
  fs::remove_all(folder);
}

TEST(Systems, RefusalsNameFileAndLine) {
  expect_error(ErrorKind::format, "x.yaml:2: malformed YAML", [] { read_config_text("x.yaml", "a: 1\n b: 2\n"); });
  expect_error(ErrorKind::format, "x.json:3: malformed JSON",
               [] { read_config_text("x.json", "{\n\"a\": 1,\n b\n}"); });
  expect_error(ErrorKind::format, "x.yaml:1: no key of a system", [] { read_config_text("x.yaml", "foo: 1\n"); });
  expect_error(ErrorKind::format, "a mapping of keys was expected", [] { read_config_text("x.yaml", "- a\n- b\n"); });
  expect_error(ErrorKind::usage, "cannot", [] { read_config_file("/no/such/file.yaml"); });
}

}  // namespace
}  // namespace headroom::doctor
