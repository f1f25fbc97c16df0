#include "expect_config.h"

namespace headroom::doctor {
namespace {

TEST(Command, TransformersBehindItsLaunchers) {
  const Job job = job_of(
      "cmd",
      "CUDA_VISIBLE_DEVICES=0,1 torchrun --standalone --nproc_per_node=4 --nnodes 2 train.py \\\n"
      "  --model_name_or_path meta-llama/Llama-2-7b-hf --per_device_train_batch_size 4 --bf16 True \\\n"
      "  --gradient_accumulation_steps=8 --fsdp \"full_shard auto_wrap offload\" --tf32 True \\\n"
      "  --fsdp_transformer_layer_cls_to_wrap LlamaDecoderLayer --evaluation_strategy no --model_max_length 512\n");
  EXPECT_EQ(job.system, System::hf_trainer);
  EXPECT_EQ(job.model, "meta-llama/Llama-2-7b-hf");
  EXPECT_EQ(job.batch.micro, 4);
  EXPECT_EQ(job.batch.accumulation, 8);
  EXPECT_EQ(job.batch.sequence, 512);
  EXPECT_EQ(job.devices.gpus, 8);
  EXPECT_EQ(job.devices.nodes, 2);
  EXPECT_EQ(job.parallel.sharding, Sharding::zero3);
  EXPECT_EQ(job.parallel.offload_parameters, Offload::cpu);
  EXPECT_EQ(job.precision.autocast, "bfloat16");
  EXPECT_TRUE(job.keys.unknown.empty());
  EXPECT_EQ(job.keys.origins.at("micro_batch").key, "--per_device_train_batch_size");
  EXPECT_EQ(job.keys.origins.at("micro_batch").line, 2);
}

TEST(Command, AccelerateLaunchAndTrl) {
  const Job job = job_of(
      "cmd",
      "accelerate launch --num_processes 2 --use_fsdp --fsdp_sharding_strategy SHARD_GRAD_OP --mixed_precision bf16 "
      "sft.py --model_name_or_path Qwen/Qwen2.5-0.5B --max_seq_length 1024 --use_peft --lora_r 32 "
      "--lora_target_modules q_proj v_proj --load_in_4bit --gradient_checkpointing false");
  EXPECT_EQ(job.system, System::trl);
  EXPECT_EQ(job.devices.gpus, 2);
  EXPECT_EQ(job.parallel.sharding, Sharding::zero2);
  EXPECT_EQ(job.precision.autocast, "bfloat16");
  EXPECT_EQ(job.batch.sequence, 1024);
  EXPECT_EQ(job.compute.checkpointing, false);
  EXPECT_EQ(job.precision.quantization, "nf4");
  ASSERT_TRUE(job.lora);
  EXPECT_EQ(job.lora->rank, 32);
  EXPECT_THAT(job.lora->targets, testing::ElementsAre("q_proj", "v_proj"));
}

TEST(Command, Litgpt) {
  const Job job = job_of(
      "cmd",
      "litgpt finetune_lora checkpoints/meta-llama/Llama-3.2-1B --train.micro_batch_size 1 --precision bf16-true "
      "--quantize bnb.nf4-dq --train.max_seq_length=512 --devices 2 --micro_batch_size 3");
  EXPECT_EQ(job.system, System::litgpt);
  EXPECT_EQ(job.model, "meta-llama/Llama-3.2-1B");
  EXPECT_EQ(job.batch.micro, 3);
  EXPECT_EQ(job.batch.sequence, 512);
  EXPECT_EQ(job.precision.quantization, "nf4-dq");
  EXPECT_EQ(job.precision.weights, "bfloat16");
  EXPECT_EQ(job.devices.gpus, 2);
  EXPECT_EQ(job.parallel.sharding, Sharding::zero3);
  ASSERT_TRUE(job.lora);
  EXPECT_THAT(job.lora->targets, testing::ElementsAre("q_proj", "v_proj"));
  EXPECT_EQ(job.keys.corrected.size(), 1u);
  EXPECT_EQ(job.keys.conflicts.size(), 1u);
}

TEST(Command, OumiTorchtuneLlamaFactoryAxolotl) {
  Job job = job_of(
      "cmd", "oumi train -c missing.yaml --training.per_device_train_batch_size 2 --model.model_name=Qwen/Qwen3-4B");
  EXPECT_EQ(job.system, System::oumi);
  EXPECT_EQ(job.batch.micro, 2);
  EXPECT_EQ(job.model, "Qwen/Qwen3-4B");
  job = job_of("cmd", "oumi distributed torchrun -m oumi train --training.optimizer adamw_torch");
  EXPECT_EQ(job.system, System::oumi);
  EXPECT_EQ(job.optimizer.name, "adamw");
  job = job_of("cmd",
               "tune run --nproc_per_node 2 lora_finetune_distributed --config llama3_1/8B_lora batch_size=1 "
               "model._component_=torchtune.models.llama3_1.lora_llama3_1_8b fsdp_cpu_offload=True");
  EXPECT_EQ(job.system, System::torchtune);
  EXPECT_EQ(job.devices.gpus, 2);
  EXPECT_EQ(job.batch.micro, 1);
  EXPECT_EQ(job.parallel.sharding, Sharding::zero3);
  EXPECT_EQ(job.parallel.offload_optimizer, Offload::cpu);
  EXPECT_EQ(job.model, "meta-llama/Meta-Llama-3.1-8B-Instruct");
  job = job_of("cmd",
               "FORCE_TORCHRUN=1 llamafactory-cli train --model_name_or_path Qwen/Qwen3-4B --stage sft --do_train "
               "--finetuning_type lora --cutoff_len 1024 per_device_train_batch_size=3");
  EXPECT_EQ(job.system, System::llamafactory);
  EXPECT_EQ(job.batch.sequence, 1024);
  EXPECT_EQ(job.batch.micro, 3);
  EXPECT_TRUE(job.lora && job.lora->all_linear);
  job = job_of("cmd", "axolotl train --base-model Qwen/Qwen3-4B --micro-batch-size 2 --sequence-len 4096");
  EXPECT_EQ(job.system, System::axolotl);
  EXPECT_EQ(job.batch.sequence, 4096);
}

TEST(Command, Servers) {
  Job job = job_of("cmd",
                   "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32k --gpu-memory-utilization 0.95 "
                   "--tensor-parallel-size 2 --enforce-eager --kv-cache-dtype fp8 --swap-space 0 --port 8000");
  EXPECT_EQ(job.system, System::vllm);
  EXPECT_EQ(job.task, Task::serve);
  EXPECT_EQ(job.model, "meta-llama/Llama-3.1-8B-Instruct");
  EXPECT_EQ(job.serving.max_model_len, 32000);
  EXPECT_EQ(job.serving.gpu_memory_utilization, 0.95);
  EXPECT_EQ(job.serving.eager, true);
  EXPECT_EQ(job.serving.kv_dtype, "fp8");
  EXPECT_EQ(job.serving.swap_bytes, 0);
  EXPECT_EQ(job.devices.gpus, 2);
  EXPECT_TRUE(job.keys.unknown.empty());
  job = job_of(
      "cmd",
      "python3 -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-8B --max_num_seqs=16 --max-model-length 4K");
  EXPECT_EQ(job.system, System::vllm);
  EXPECT_EQ(job.serving.max_sequences, 16);
  EXPECT_EQ(job.serving.max_model_len, 4096);
  for (const auto& [flag, method] : {std::pair("moe_wna16", "awq"), std::pair("awq_marlin", "awq")})
    EXPECT_EQ(job_of("cmd", std::string("vllm serve x/R1-AWQ --quantization ") + flag).precision.quantization, method);
  job =
      job_of("cmd", "python -m sglang.launch_server --model-path oumi-ai/HallOumi-8B --mem-fraction-static 0.9 --tp 4");
  EXPECT_EQ(job.system, System::sglang);
  EXPECT_EQ(job.serving.gpu_memory_utilization, 0.9);
  EXPECT_EQ(job.parallel.tensor, 4);
  job = job_of("cmd",
               "./build/bin/llama-server -m /models/q.gguf -c 32768 -ngl 99 -fa on -ctk q8_0 -ctv q8_0 -np 4 -ub 1024 "
               "-ts 11,11,10");
  EXPECT_EQ(job.system, System::llama_server);
  EXPECT_EQ(job.serving.max_model_len, 32768);
  EXPECT_EQ(job.serving.gpu_layers, 99);
  EXPECT_EQ(job.serving.kv_dtype, "q8_0");
  EXPECT_EQ(job.serving.max_sequences, 4);
  EXPECT_EQ(job.devices.gpus, 3);
  job = job_of("cmd",
               "docker run --gpus all --rm -p 8000:8000 -v x:/y vllm/vllm-openai:latest --model Qwen/Qwen3-8B "
               "--max-model-len 8192");
  EXPECT_EQ(job.system, System::vllm);
  EXPECT_EQ(job.serving.max_model_len, 8192);
}

TEST(Command, SlurmScript) {
  const ConfigReading reading = read_config_text("job.sbatch", R"(#!/bin/bash
#SBATCH --job-name=ft
#SBATCH --nodes=2
#SBATCH --gres=gpu:a100:4
#SBATCH -c 8
#SBATCH --mem=200G   # per node
#SBATCH --time=12:00:00
module load cuda
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
BATCH=2
ARGS=(
  --per_device_train_batch_size $BATCH
  --deepspeed ds.json
)
srun --ntasks-per-node=1 torchrun --nproc_per_node 4 --nnodes 2 run_clm.py --model_name_or_path gpt2 "${ARGS[@]}" --lr $LR
)");
  expect_all_keys(reading);
  const Job& job = reading.job;
  EXPECT_EQ(job.system, System::hf_trainer);
  EXPECT_EQ(job.devices.gpus, 8);
  EXPECT_EQ(job.devices.nodes, 2);
  EXPECT_EQ(job.devices.gpu, "a100");
  EXPECT_EQ(job.devices.grant.host_memory_bytes, int64_t{200} << 30);
  EXPECT_EQ(job.devices.grant.cpus, 8);
  EXPECT_EQ(job.devices.grant.time_limit, "12:00:00");
  EXPECT_EQ(job.batch.micro, 2);
  EXPECT_EQ(job.environment.allocator.at("expandable_segments"), "True");
  EXPECT_EQ(job.keys.origins.at("micro_batch").line, 12);
  EXPECT_NE(note_of(job.keys.corrected, "PYTORCH_CUDA_ALLOC_CONF"), nullptr);
  ASSERT_EQ(reading.notes.size(), 2u);  // run_clm.py and ds.json do not exist
}

TEST(Command, KubernetesAndCompose) {
  Job job = job_of("pod.yaml", R"(apiVersion: v1
kind: Pod
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:latest
    args: ["--model", "Qwen/Qwen3-8B", "--max-model-len", "8192"]
    resources:
      limits:
        nvidia.com/gpu: 2
)");
  EXPECT_EQ(job.system, System::vllm);
  EXPECT_EQ(job.model, "Qwen/Qwen3-8B");
  EXPECT_EQ(job.serving.max_model_len, 8192);
  EXPECT_EQ(job.devices.gpus, 2);
  job = job_of("compose.yml",
               "services:\n  llm:\n    image: x\n    command: vllm serve Qwen/Qwen3-8B --max-num-seqs 4\n");
  EXPECT_EQ(job.serving.max_sequences, 4);
}

TEST(Command, CloudJobs) {
  const std::string text = R"(name: tune
num_nodes: 2
resources:
  accelerators: "A100-80GB:4"
  use_spot: false
envs:
  BATCH: 3
setup: |
  #SBATCH --cpus-per-task=8
  pip install oumi
run: |
  set -e
  oumi distributed torchrun \
      -m oumi train \
      -c oumi://configs/train.yaml \
      --training.per_device_train_batch_size $BATCH
)";
  const Job job = job_of("job.yaml", text);
  EXPECT_EQ(job.system, System::oumi);
  EXPECT_EQ(job.batch.micro, 3);
  EXPECT_EQ(job.keys.origins.at("micro_batch").line, 16);
  EXPECT_EQ(job.devices.gpus, 8);
  EXPECT_EQ(job.devices.nodes, 2);
  EXPECT_EQ(job.devices.gpu, "a100-80gb");
  EXPECT_EQ(job.devices.grant.cpus, 8);
  EXPECT_TRUE(job.keys.unknown.empty());
  const Job served = job_of("job.yaml", "resources: {accelerators: {H100: 8}}\nrun: vllm serve m/x\n");
  EXPECT_EQ(served.devices.gpus, 8);
  EXPECT_EQ(served.keys.origins.at("model").line, 2);
  expect_error(ErrorKind::format, "job.yaml:2: the job's run section holds no command",
               [] { read_config_text("job.yaml", "resources: {cpus: 2}\nrun: ls -l\n"); });
}

TEST(Command, UnknownAndUnreadable) {
  const Job job = job_of(
      "cmd", "python train.py --per_device_train_batchsize 4 --gradient_accumulation_steps $N --zzz 1 --optim sgd");
  const KeyNote* near = note_of(job.keys.unknown, "--per_device_train_batchsize");
  ASSERT_NE(near, nullptr);
  EXPECT_EQ(near->text, "per_device_train_batch_size");
  EXPECT_EQ(note_of(job.keys.unknown, "--zzz")->text, "");
  EXPECT_THAT(note_of(job.keys.unreadable, "--gradient_accumulation_steps")->text, testing::HasSubstr("$N"));
  EXPECT_FALSE(job.batch.micro);
  expect_error(ErrorKind::format, "no command of a system", [] { read_config_text("x.sh", "ls -l\n"); });
}

TEST(Command, ArgumentsOfDoctorItself) {
  ConfigInput input;
  input.arguments = {"vllm", "serve", "a model", "--max-model-len", "100"};
  const ConfigReading reading = read_config(input);
  EXPECT_EQ(reading.job.model, "a model");
  EXPECT_EQ(reading.job.serving.max_model_len, 100);
}

TEST(Commands, AProgramOfItsOwnIsNoTrainingArguments) {
  const Job own = read_config_text("cmd.sh", "python train.py --batch 8 --img 640 --epochs 3\n").job;
  EXPECT_EQ(own.system, System::pytorch_script);
  const Job trainer = read_config_text("cmd.sh", "python train.py --output_dir out --bf16 True\n").job;
  EXPECT_EQ(trainer.system, System::hf_trainer);
}

TEST(Commands, LlamaRecipesHasItsOwnOptions) {
  const Job job = read_config_text("cmd.sh",
                                   "torchrun finetuning.py --enable_fsdp --use_peft --model_name m --output_dir out "
                                   "--batch_size_training 8\n")
                      .job;
  EXPECT_EQ(job.system, System::pytorch_script);
  EXPECT_EQ(job.batch.micro, 8);
}

TEST(Commands, AlpacaLoraTrainsAdaptersByItsOwnOptions) {
  const Job job = read_config_text("cmd.sh",
                                   "torchrun --nproc_per_node=4 finetune.py --base_model=m/x --micro_batch_size=2 "
                                   "--batch_size=16 --cutoff_len=1024 --lora_r=32 --train_8bit=False\n")
                      .job;
  EXPECT_EQ(job.batch.micro, 2);
  EXPECT_EQ(job.batch.sequence, 1024);
  EXPECT_EQ(job.precision.weights, "float16");
  EXPECT_EQ(job.precision.quantization.value_or("none"), "none");
  ASSERT_TRUE(job.lora);
  EXPECT_EQ(job.lora->rank, 32);
}

TEST(Commands, TheTrainBatchOfOpenRlhfIsOfAllDevices) {
  const std::string dpo = "deepspeed --module openrlhf.cli.train_dpo --pretrain m/x --train_batch_size 64";
  const Job job = read_config_text("cmd.sh", dpo + " --micro_train_batch_size 2\n").job;
  EXPECT_EQ(job.batch.micro, 2);
  EXPECT_EQ(job.batch.global, 64);
  const Job reversed =
      read_config_text("cmd.sh", "python train.py --micro_train_batch_size 2 --train_batch_size 64\n").job;
  EXPECT_EQ(reversed.batch.micro, 2) << "another program with both";
  EXPECT_EQ(reversed.batch.global, 64);
  const Job silent = read_config_text("cmd.sh", dpo + "\n").job;
  EXPECT_EQ(silent.batch.micro, 8) << "its own default";
  EXPECT_EQ(silent.batch.global, 64);
  const Job diffusers = read_config_text("cmd.sh", "python train_dreambooth.py --train_batch_size 4\n").job;
  EXPECT_EQ(diffusers.batch.micro, 4) << "one device's elsewhere";
  EXPECT_FALSE(diffusers.batch.global);
}

TEST(Documents, LudwigsFileIsNotAxolotls) {
  EXPECT_THROW(
      read_config_text("l.yaml", "model_type: llm\nbase_model: m\nadapter:\n  type: lora\ntrainer:\n  epochs: 1\n"),
      Error);
}

TEST(Commands, LlamaFactoryBeforeItsOwnCommand) {
  const Job job =
      read_config_text("cmd.sh",
                       "python src/train_bash.py --stage sft --do_train --finetuning_type lora --model_name_or_path m "
                       "--max_source_length 1024 --max_target_length 512\n")
          .job;
  EXPECT_EQ(job.system, System::llamafactory);
  EXPECT_TRUE(job.lora.has_value());
  EXPECT_EQ(job.batch.sequence, 1536) << "prompt and answer are one sequence";
}

TEST(Commands, AMissingDeepspeedFileSaysItsStageInItsName) {
  const ConfigReading reading = read_config_text(
      "cmd.sh", "deepspeed run.py --output_dir out --deepspeed examples/deepspeed/ds_z3_offload_config.json\n");
  EXPECT_EQ(reading.job.parallel.sharding, Sharding::zero3);
  EXPECT_EQ(reading.job.parallel.offload_optimizer, Offload::cpu);
  EXPECT_TRUE(reading.job.parallel.deepspeed);
}

TEST(Commands, TheTypeOfAGgufFileIsInItsName) {
  EXPECT_EQ(read_config_text("cmd.sh", "llama-cli -m model-Q4_K_M.gguf -p hello\n").job.precision.quantization,
            "q4_k_m");
}

TEST(Commands, ScriptsThatPrepareDataTrainNothing) {
  const Job job = read_config_text("cmd.sh",
                                   "python scripts/prepare_alpaca.py --checkpoint_dir a\n"
                                   "python finetune/lora.py --checkpoint_dir b\n")
                      .job;
  EXPECT_EQ(job.system, System::litgpt);
  EXPECT_EQ(job.batch.micro, 4) << "the scripts of 2023";
}

}  // namespace
}  // namespace headroom::doctor
