// doctor's own readers know every option that doctor recommends: each is written into a file, a script or a command of
// its system and read back.
#include "base/error.h"
#include "doctor/config/config_reader.h"
#include "doctor/config/patch.h"
#include "doctor/remedies/option_text.h"
#include "doctor/remedies/technique.h"
#include "incidents.h"

namespace headroom::doctor {
namespace {

struct Home {
  System system;
  Style style;
  SourceKind kind;
  const char* name;
  const char* text;
};

// The smallest text that each system's reader accepts as its own.
constexpr Home kHomes[] = {
    {System::hf_trainer, Style::python, SourceKind::python, "train.py",
     "from transformers import TrainingArguments\nargs = TrainingArguments(output_dir=\"o\", max_steps=5)\n"},
    {System::trl, Style::python, SourceKind::python, "train.py",
     "from trl import SFTConfig\nargs = SFTConfig(output_dir=\"o\", max_steps=5)\n"},
    {System::trl, Style::flags, SourceKind::command, "command",
     "trl sft --model_name_or_path Qwen/Qwen2.5-1.5B --output_dir o"},
    {System::hf_trainer, Style::flags, SourceKind::command, "command",
     "python run_clm.py --model_name_or_path gpt2 --output_dir o --max_steps 5"},
    {System::axolotl, Style::yaml, SourceKind::yaml, "train.yaml",
     "base_model: NousResearch/Meta-Llama-3.1-8B\ndatasets:\n  - path: x\n    type: alpaca\nsequence_len: 4096\n"},
    {System::llamafactory, Style::yaml, SourceKind::yaml, "train.yaml",
     "model_name_or_path: gpt2\nstage: sft\ndo_train: true\nfinetuning_type: full\ntemplate: llama3\ndataset: x\n"},
    {System::oumi, Style::yaml, SourceKind::yaml, "train.yaml",
     "model:\n  model_name: gpt2\ntraining:\n  trainer_type: TRL_SFT\n  max_steps: 5\n"},
    {System::litgpt, Style::yaml, SourceKind::yaml, "train.yaml",
     "checkpoint_dir: checkpoints/meta-llama/Llama-3.2-1B\ntrain:\n  epochs: 1\n  lr_warmup_steps: 10\n"},
    {System::litgpt, Style::flags, SourceKind::command, "command", "litgpt finetune_full meta-llama/Llama-3.2-1B"},
    {System::torchtune, Style::yaml, SourceKind::yaml, "train.yaml",
     "model:\n  _component_: torchtune.models.llama3_2.llama3_2_1b\ntokenizer:\n  path: t\noptimizer:\n  "
     "_component_: torch.optim.AdamW\n  lr: 2e-5\nloss:\n  _component_: torch.nn.CrossEntropyLoss\ndataset:\n  "
     "_component_: torchtune.datasets.alpaca_dataset\n"},
    {System::deepspeed, Style::json, SourceKind::json, "ds.json",
     "{\"train_batch_size\": 8, \"zero_optimization\": {\"stage\": 1}}\n"},
    {System::neox, Style::json, SourceKind::json, "neox.json",
     "{\"num_layers\": 12, \"hidden_size\": 768, \"num_attention_heads\": 12, \"pipe_parallel_size\": 1, "
     "\"max_position_embeddings\": 2048, \"seq_length\": 2048}\n"},
    {System::accelerate, Style::yaml, SourceKind::yaml, "accelerate.yaml",
     "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nfsdp_config:\n  fsdp_offload_params: false\n"},
    {System::vllm, Style::flags, SourceKind::command, "command", "vllm serve meta-llama/Llama-3.1-8B-Instruct"},
    {System::sglang, Style::flags, SourceKind::command, "command",
     "python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct"},
    {System::llama_server, Style::flags, SourceKind::command, "command", "llama-server -m model-Q4_K_M.gguf"},
    {System::tgi, Style::flags, SourceKind::command, "command", "text-generation-launcher --model-id gpt2"},
};

Values values_for(System system) {
  const std::string layers = system == System::llama_server ? "20" : "\"model.layers.0\"";
  return {{"micro", "1"},
          {"acc", "8"},
          {"seq", "1024"},
          {"eval", "1"},
          {"steps", "1"},
          {"rank", "16"},
          {"alpha", "32"},
          {"dtype", "bfloat16"},
          {"litgpt", "bf16"},
          {"layers", layers},
          {"trainable", "2"},
          {"short", "bf16"},
          {"upper", "BF16"},
          {"workers", "2"},
          {"attn", "sdpa"},
          {"factory", "sdpa"},
          {"gpus", "2"},
          {"stage", "2"},
          {"fraction", "0.85"},
          {"length", "8192"},
          {"input", "8191"},
          {"count", "64"},
          {"tokens", "2048"},
          {"split", "1,1"},
          {"gib", "8"},
          {"hf", "fsdp=full_shard auto_wrap offload"},
          {"accelerate", "fsdp_config.fsdp_offload_params=True"},
          {"oumi", "fsdp.enable_fsdp=True; fsdp.cpu_offload=True"},
          {"launcher", "distributed_type=FSDP; "},
          {"full_shard", "fsdp_config.fsdp_sharding_strategy=FULL_SHARD"}};
}

std::string data_word(const std::string& value) {
  if (value == "True" || value == "False") return value == "True" ? "true" : "false";
  return value == "None" ? "null" : value;
}

// The text with all settings of the option.
std::string with_settings(const Home& home, const Spelt& spelt) {
  if (home.kind == SourceKind::command) return std::string(home.text) + " " + spelt.text;
  std::string text = home.text;
  for (const auto& [key, value] : spelt.settings) {
    const std::string call = home.system == System::trl ? "SFTConfig." : "TrainingArguments.";
    const bool script = home.kind == SourceKind::python;
    const Edit edit{script ? call + key : key, script ? value : data_word(value), 0, false};
    text = patch_config(home.name, home.kind, text, {edit}).text;
  }
  return text;
}

ConfigReading read(const Home& home, const std::string& text) {
  if (home.kind != SourceKind::command) return read_config_text(home.name, text);
  ConfigInput input;
  input.texts.push_back({"job.sh", text});
  return read_config(input);
}

void expect_known(const Job& job, const std::string& what) {
  for (const KeyNote& note : job.keys.unknown) ADD_FAILURE() << what << ": " << note.origin.key << " is unknown";
  for (const KeyNote& note : job.keys.unreadable)
    ADD_FAILURE() << what << ": " << note.origin.key << " = " << note.value << ": " << note.text;
  for (const KeyNote& note : job.keys.corrected) ADD_FAILURE() << what << ": " << note.origin.key << ": " << note.text;
}

TEST(Options, AreKnownToDoctorsOwnReaders) {
  int checked = 0;
  for (const Home& home : kHomes) {
    ASSERT_EQ(read(home, home.text).job.system, home.system) << home.text;
    ASSERT_TRUE(read(home, home.text).job.keys.unknown.empty()) << home.text;
    for (const Technique& technique : all_techniques()) {
      const Spelt spelt = spell(technique.name, home.system, home.style, values_for(home.system));
      if (spelt.settings.empty() || !spelt.available) continue;
      const std::string text = with_settings(home, spelt);
      expect_known(read(home, text).job,
                   std::string(technique.name) + " in " + system_name(home.system) + ", " + spelt.text);
      ++checked;
    }
  }
  EXPECT_GT(checked, 200);
}

TEST(Options, AreWrittenAsTheUserWrites) {
  const Values values = values_for(System::oumi);
  const auto text = [&](std::string_view technique, System system, Style style) {
    return spell(technique, system, style, values).text;
  };
  EXPECT_EQ(text("micro-batch", System::oumi, Style::yaml),
            "training.per_device_train_batch_size: 1, training.gradient_accumulation_steps: 8");
  EXPECT_EQ(text("micro-batch", System::oumi, Style::python),
            "TrainingParams(per_device_train_batch_size=1, gradient_accumulation_steps=8)");
  EXPECT_EQ(text("lora", System::oumi, Style::python),
            "TrainingParams(use_peft=True), PeftParams(lora_r=16, lora_alpha=32)");
  EXPECT_EQ(text("no-prefetch", System::oumi, Style::python),
            "FSDPParams(backward_prefetch=BackwardPrefetch.NO_PREFETCH, forward_prefetch=False)");
  EXPECT_EQ(text("micro-batch", System::torchtune, Style::flags), "batch_size=1 gradient_accumulation_steps=8");
  EXPECT_EQ(text("micro-batch", System::hf_trainer, Style::flags),
            "--per_device_train_batch_size 1 --gradient_accumulation_steps 8");
  EXPECT_EQ(text("micro-batch", System::hf_trainer, Style::json),
            "\"per_device_train_batch_size\": 1, \"gradient_accumulation_steps\": 8");
  EXPECT_EQ(text("offload-optimizer", System::deepspeed, Style::json),
            "\"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": {\"device\": \"cpu\"}}");
  EXPECT_EQ(text("checkpointing", System::hf_trainer, Style::flags),
            "--gradient_checkpointing True --gradient_checkpointing_kwargs '{\"use_reentrant\": false}'");
  EXPECT_EQ(text("mixed-precision", System::accelerate, Style::python), "Accelerator(mixed_precision=\"bf16\")");
  // LitGPT's scripts of 2023 had variables.
  EXPECT_EQ(text("micro-batch", System::litgpt, Style::python),
            "micro_batch_size = 1 (today: --train.micro_batch_size 1)");
  EXPECT_EQ(text("sequence-length", System::litgpt, Style::python),
            "override_max_seq_length = 1024 (today: --train.max_seq_length 1024)");
}

TEST(Options, StyleIsThatOfMostKeys) {
  Job job = training_job(System::trl);
  EXPECT_EQ(style_of(job), Style::python);
  job.keys.origins["autocast"] = {"fsdp.yaml", 3, "mixed_precision"};
  job.keys.origins["micro_batch"] = {"train.py", 10, "SFTConfig.per_device_train_batch_size"};
  job.keys.origins["sequence"] = {"train.py", 11, "SFTConfig.max_length"};
  EXPECT_EQ(style_of(job), Style::python);
  EXPECT_EQ(style_of(job, "autocast"), Style::yaml);
  job.keys.origins["micro_batch"] = job.keys.origins["sequence"] = {"", 0, "--max_length"};
  EXPECT_EQ(style_of(job), Style::flags);
  // A server's options are command-line options, wherever they were read.
  job.system = System::vllm;
  job.keys.origins["micro_batch"] = job.keys.origins["sequence"] = {"compose.yaml", 4, "command"};
  EXPECT_EQ(style_of(job), Style::flags);
}

}  // namespace
}  // namespace headroom::doctor
