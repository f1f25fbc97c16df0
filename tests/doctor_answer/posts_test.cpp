// Posts like those in forums, in short texts written for the tests: the first remedies, and what must not be said.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "doctor/answer/answer.h"
#include "doctor/output/screen.h"

namespace headroom::doctor {
namespace {

constexpr const char* kFull =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 18.00 MiB. GPU 0 has a total capacity of 23.64 GiB "
    "of which 9.12 MiB is free. Including non-PyTorch memory, this process has 23.62 GiB memory in use. Of the "
    "allocated memory 23.12 GiB is allocated by PyTorch, and 45.00 MiB is reserved by PyTorch but unallocated.\n";

Answer post(const std::string& text, Request request = {}) {
  request.inputs = {"-"};
  std::istringstream stream(text);
  return answer(request, stream);
}

// Whether one of the first three remedies contains these words.
bool proposes(const Answer& a, const std::string& words) {
  const std::vector<Remedy>& remedies = a.report.diagnosis.remedies;
  for (size_t i = 0; i < std::min<size_t>(3, remedies.size()); ++i)
    if (remedies[i].set.find(words) != std::string::npos) return true;
  return false;
}

bool offers(const Answer& a, const std::string& words) {
  for (const Remedy& remedy : a.report.diagnosis.remedies)
    if (remedy.set.find(words) != std::string::npos) return true;
  return false;
}

bool explained(const Answer& a, const std::string& cause) {
  for (const Cause& each : a.report.diagnosis.causes)
    if (each.name == cause) return true;
  return false;
}

std::string first_cause(const Answer& a) {
  return a.report.diagnosis.causes.empty() ? "" : a.report.diagnosis.causes.front().name;
}

TEST(Posts, APipelineOfDiffusersMayWaitOnTheHost) {
  const std::string pipe = "pipe = FluxPipeline.from_pretrained(\"black-forest-labs/FLUX.1-dev\")\n";
  const Answer a = post(pipe + "pipe.to(\"cuda\")\n" + kFull);
  EXPECT_TRUE(proposes(a, "enable_model_cpu_offload()"));
  EXPECT_TRUE(proposes(a, "vae.enable_tiling()"));
  const Answer offloaded = post(pipe + "pipe.enable_model_cpu_offload()\n" + kFull);
  EXPECT_FALSE(offers(offloaded, "enable_model_cpu_offload()"));
  EXPECT_TRUE(proposes(offloaded, "enable_sequential_cpu_offload()"));
}

TEST(Posts, ARequestAsLargeAsAttentionScores) {
  const char* before = "RuntimeError: CUDA out of memory. Tried to allocate ";
  const char* behind =
      " GiB (GPU 0; 8.00 GiB total capacity; 5.49 GiB already allocated; 0 bytes free; 6.41 GiB reserved in total by "
      "PyTorch)\n";
  const Answer scores = post(std::string(before) + "5.06" + behind);
  EXPECT_EQ(first_cause(scores), "attention_scores_of_an_image");
  EXPECT_TRUE(proposes(scores, "enable_attention_slicing()"));
  EXPECT_NE(first_cause(post(std::string(before) + "5.00" + behind)), "attention_scores_of_an_image");
}

TEST(Posts, ADreamBoothScriptHasFlagsOfItsOwn) {
  const std::string command = "accelerate launch train_dreambooth.py --resolution=512 --train_batch_size=1 ";
  const Answer plain = post(command + "\n" + kFull);
  EXPECT_TRUE(proposes(plain, "--gradient_checkpointing"));
  EXPECT_TRUE(proposes(plain, "--use_8bit_adam"));
  EXPECT_FALSE(offers(plain, "--train_batch_size 1")) << "it is 1 already";
  EXPECT_FALSE(offers(plain, "pipe.enable_model_cpu_offload()")) << "a training";
  const Answer saving = post(command + "--gradient_checkpointing --use_8bit_adam\n" + kFull);
  EXPECT_FALSE(offers(saving, "--gradient_checkpointing"));
  EXPECT_FALSE(offers(saving, "--use_8bit_adam"));
}

TEST(Posts, KohyasScriptsHaveOthers) {
  const Answer a =
      post(std::string("sdxl_train_network.py --network_module networks.lora --train_batch_size 4\n") + kFull);
  EXPECT_TRUE(proposes(a, "--optimizer_type AdamW8bit"));
  EXPECT_FALSE(offers(a, "--use_8bit_adam"));
}

constexpr const char* kVerl =
    "python3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.name=vllm "
    "actor_rollout_ref.rollout.gpu_memory_utilization=0.8\n";
constexpr const char* kShared =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 79.10 GiB "
    "of which 1.10 GiB is free. Process 12 has 77.98 GiB memory in use. Of the allocated memory 40.12 GiB is allocated "
    "by PyTorch, and 1.02 GiB is reserved by PyTorch but unallocated.\n";

TEST(Posts, VerlIsToldInItsOwnKeys) {
  const Answer update =
      post(std::string(kVerl) + "  File \"/verl/workers/actor/dp_actor.py\", line 233, in update_policy\n" + kShared);
  EXPECT_EQ(first_cause(update), "update_beside_the_rollout");
  EXPECT_TRUE(proposes(update, "ppo_micro_batch_size_per_gpu=1"));
  EXPECT_TRUE(proposes(update, "optimizer_offload=True"));
  const Answer wake = post(std::string(kVerl) +
                           "  File \"/site-packages/vllm/device_allocator/cumem.py\", line 200, in wake_up\n"
                           "RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62\n");
  EXPECT_TRUE(proposes(wake, "actor_rollout_ref.rollout.gpu_memory_utilization=0.4"));
  for (const Answer* a : {&update, &wake}) {
    EXPECT_FALSE(offers(*a, "--max-num-seqs")) << "a server's option";
    EXPECT_FALSE(offers(*a, "kill 12")) << "its own rollout";
    EXPECT_FALSE(offers(*a, "vllm_gpu_memory_utilization")) << "TRL's option";
  }
  const Answer offloaded =
      post(std::string(kVerl) + "actor_rollout_ref.actor.fsdp_config.param_offload=True in wake_up\n" + kShared);
  EXPECT_FALSE(offers(offloaded, "param_offload=True"));
}

TEST(Posts, AModelBesideAServersLogIsServed) {
  Request request;
  request.model = "Qwen/Qwen2.5-7B";
  const std::string frame = "  File \"/site-packages/vllm/worker/model_runner.py\", line 1034, in profile_run\n";
  const Answer served = post(frame + kFull, request);
  ASSERT_TRUE(served.report.incident.job);
  EXPECT_EQ(served.report.incident.job->task, Task::serve);
  EXPECT_EQ(served.report.incident.job->system, System::vllm);
  EXPECT_FALSE(offers(served, "gradient_checkpointing")) << "nothing is trained";
  EXPECT_TRUE(offers(served, "--gpu-memory-utilization"));
  const Answer trained = post(kFull, request);
  EXPECT_EQ(trained.report.incident.job->task, Task::train);
  const Answer rollout = post(std::string(kVerl) + frame + kShared, request);
  EXPECT_NE(rollout.report.incident.job->task, Task::serve) << "its server is a part of a training";
}

TEST(Posts, ABareMessageOfTensorFlowIsNotPyTorchs) {
  const Answer a = post(
      "tensorflow Check failed: err == cudaSuccess Unexpected CUDA error: out of memory\n"
      "RuntimeError: CUDA out of memory\n");
  ASSERT_FALSE(a.report.incident.messages.empty());
  EXPECT_EQ(a.report.incident.messages[0].framework, "tensorflow");
  EXPECT_TRUE(proposes(a, "TF_FORCE_GPU_ALLOW_GROWTH"));
  EXPECT_FALSE(offers(a, "DataLoader"));
  const Answer torch = post("tensorflow was imported too\ntorch.cuda.OutOfMemoryError: CUDA out of memory.\n");
  EXPECT_EQ(torch.report.incident.messages[0].framework, "pytorch-cuda");
}

TEST(Posts, HostMemoryInWords) {
  const Answer a = post("swift sft --deepspeed zero2\n保存模型时 CPU 内存暴涨，OOM\n");
  ASSERT_EQ(a.report.incident.messages.size(), 1u);
  EXPECT_EQ(first_cause(a), "saved_in_host_memory");
  EXPECT_TRUE(proposes(a, "--deepspeed zero3"));
  EXPECT_TRUE(post("the CPU memory is large enough\n").report.incident.messages.empty());
  const Answer device = post("CPU memory is fine, no crash there\nCUDA out of memory\n");
  EXPECT_EQ(device.report.incident.messages[0].framework, "pytorch-cuda");
}

TEST(Posts, OpenRlhfInItsFlags) {
  const Answer a = post(std::string("python -m openrlhf.cli.train_ppo_ray --adam_offload\n") + kShared);
  EXPECT_TRUE(proposes(a, "--micro_train_batch_size 1"));
  EXPECT_TRUE(proposes(a, "--vllm_gpu_memory_utilization 0.5"));
  EXPECT_FALSE(offers(a, "--adam_offload"));
}

TEST(Posts, OpenRlhfTakesSeveralSamplesOfAPrompt) {
  const Answer a = post(std::string("python -m openrlhf.cli.train_ppo_ray --n_samples_per_prompt 8 "
                                    "--micro_train_batch_size 1 --gradient_checkpointing\n") +
                        kShared);
  EXPECT_FALSE(explained(a, "first_scripts_of_stable_diffusion"));
  EXPECT_FALSE(offers(a, "--micro_train_batch_size 1")) << "it is 1";
}

TEST(Posts, ColossalAIHasAZeroOfItsOwn) {
  const Answer a =
      post(std::string("colossalai run --nproc_per_node 4 train_sft.py --plugin colossalai_zero2\n") + kShared);
  EXPECT_FALSE(offers(a, "offload_optimizer"));
}

TEST(Posts, TheDeviceIsNamedAmongTheEnvironment) {
  const Answer a = post(std::string("- Python version: 3.11\n- GPU type: NVIDIA L40\n- GPU number: 1\n") + kShared);
  ASSERT_TRUE(a.report.incident.gpu);
  EXPECT_NE(a.report.incident.gpu->name.find("L40"), std::string::npos) << a.report.incident.gpu->name;
}

TEST(Posts, WeightsThatLeaveSglangNoPoolWantMoreDevices) {
  const Answer measured = post(
      "[TP0] Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=1.34 GB, mem usage=21.5 GB.\n"
      "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n");
  EXPECT_EQ(first_cause(measured), "weights_leave_no_pool");
  EXPECT_TRUE(proposes(measured, "--tp 2"));
  const Answer roomy = post(
      "[TP0] Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=9.34 GB, mem usage=14.2 GB.\n"
      "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n");
  EXPECT_NE(first_cause(roomy), "weights_leave_no_pool");
  EXPECT_TRUE(proposes(roomy, "--mem-fraction-static"));
  EXPECT_TRUE(proposes(post("ValueError: Loaded weights leave no GPU memory for the KV cache. Increase "
                            "--mem-fraction-static or --tp\n"),
                       "--tp 2"));
}

TEST(Posts, AModelfileIsOllamas) {
  const Answer a = post("FROM llama3.1:70b\nPARAMETER num_ctx 65536\nPARAMETER num_gpu 81\n");
  EXPECT_TRUE(proposes(a, "num_ctx 4096"));
  EXPECT_TRUE(proposes(a, "num_gpu <half of the layers>"));
  EXPECT_FALSE(offers(a, "DataLoader"));
}

TEST(Posts, TheStageIsReadInChineseAndJapanese) {
  for (const char* words : {"训练正常,一到评估阶段就爆显存\n", "在验证集上跑就 out of memory\n",
                            "検証のときにメモリ不足になります\n", "it only happens in the evaluation stage\n"}) {
    const Answer a = post(std::string(words) + kFull);
    EXPECT_EQ(first_cause(a), "gradients_kept_in_evaluation") << words;
    EXPECT_TRUE(proposes(a, "torch.no_grad()")) << words;
  }
}

TEST(Posts, ACacheThatIsTooSmallBesideATrainingWantsALargerShare) {
  const std::string cache =
      "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing "
      "the engine.\n";
  const Answer trl = post(
      "  File \"/site-packages/trl/trainer/grpo_trainer.py\", line 612, in __init__\n    self.llm = LLM(\n"
      "  File \"/site-packages/vllm/worker/worker.py\", line 250, in determine_num_available_blocks\n" +
      cache);
  EXPECT_EQ(first_cause(trl), "cache_beside_a_training");
  EXPECT_TRUE(proposes(trl, "vllm_gpu_memory_utilization=0.6"));
  EXPECT_FALSE(offers(trl, "--max-num-seqs")) << "a server's option";
  const Answer verl = post(kVerl + cache);
  EXPECT_EQ(first_cause(verl), "share_of_the_rollout");
  EXPECT_FALSE(offers(verl, "gpu_memory_utilization=0.4"));
}

TEST(Posts, ATypedCommandIsReadWhereItSaysAll) {
  const std::string failed =
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.53 GiB (GPU 0; 23.69 GiB total capacity; "
      "21.50 GiB already allocated; 700.00 MiB free; 22.10 GiB reserved in total by PyTorch)\n";
  const Answer whole = post(
      "python run_clm.py --model_name_or_path gpt2-xl --per_device_train_batch_size 8 --block_size 1024 --do_train "
      "--output_dir out\n" +
      failed);
  ASSERT_TRUE(whole.config.has_value());
  EXPECT_TRUE(proposes(whole, "--per_device_train_batch_size 2"));
  EXPECT_TRUE(whole.report.diagnosis.smallest_fitting_set.empty()) << "nobody saw the script";
  EXPECT_NE(whole.report.diagnosis.doubt.find("run_clm.py may set more"), std::string::npos);
  // The files that it names determine the batch, the length and the sharding.
  const Answer named =
      post("accelerate launch --config_file zero3.yaml scripts/run_sft.py config_full.yaml\n" + failed);
  EXPECT_FALSE(named.config.has_value());
  EXPECT_NE(screen(named.report).find("GIVE  --config config_full.yaml"), std::string::npos) << screen(named.report);
  const Answer own = post("python train.py --frobnicate 7 --model_name gpt2-xl\n" + failed);
  EXPECT_FALSE(own.config.has_value());
}

TEST(Posts, LanguageModelsAreGivenShorterTexts) {
  const Answer text = post(std::string("gemma-3-12b in 4 bits, max_seq_length=2048\n") + kFull);
  EXPECT_TRUE(offers(text, "shorter texts: half of max_length"));
  EXPECT_FALSE(offers(text, "crop or resize images"));
  for (const Remedy& remedy : text.report.diagnosis.remedies)
    EXPECT_EQ(remedy.effect.find("images"), std::string::npos) << remedy.set;
  EXPECT_TRUE(offers(post(kFull), "crop or resize images"));
}

TEST(Posts, QuantisedWeightsAreNotQuantisedAgain) {
  const std::string log =
      "vllm 0.6.3\nINFO model_runner.py:1071] Loading model weights took 37.0860 GB\ntorch.OutOfMemoryError: CUDA out "
      "of "
      "memory. Tried to allocate 896.00 MiB. GPU 0 has a total capacity of 39.39 GiB of which 512.06 MiB is free.\n";
  EXPECT_TRUE(proposes(post(log), "AWQ or GPTQ"));
  EXPECT_TRUE(proposes(post(log), "--tensor-parallel-size 2"));
  EXPECT_FALSE(offers(post("Llama-3.1-70B-Instruct-AWQ\n" + log), "AWQ or GPTQ"));
}

TEST(Posts, ACheckpointIsReadOnTheHost) {
  EXPECT_TRUE(proposes(post(std::string("checkpoint = torch.load(args.resume)\n") + kFull), "map_location=\"cpu\""));
  EXPECT_FALSE(
      offers(post(std::string("ckpt = torch.load(args.resume, map_location=\"cpu\")\n") + kFull), "map_location"));
  EXPECT_FALSE(offers(post(std::string("trainer.train(resume_from_checkpoint=resume_from_checkpoint)\n") + kFull),
                      "map_location"))
      << "a line of code that resumes only where one is given";
}

TEST(Posts, TheAsynchronousAllocatorsMessage) {
  const Answer a = post(
      "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\n"
      "Currently allocated     : 6.42 GiB\nRequested               : 1.25 GiB\nDevice limit            : 8.00 GiB\n"
      "Free (according to CUDA): 0 bytes\nPyTorch limit (set by user-supplied memory fraction)\n"
      "                        : 17179869184.00 GiB\n");
  ASSERT_EQ(a.report.incident.messages.size(), 1u);
  const Message& message = a.report.incident.messages[0];
  EXPECT_EQ(message.framework, "pytorch-cuda");
  EXPECT_EQ(message.requested_bytes, int64_t{5} << 28);
  EXPECT_EQ(message.capacity_bytes, int64_t{8} << 30);
  EXPECT_EQ(message.free_bytes, 0);
  EXPECT_EQ(message.allocated_bytes, static_cast<int64_t>(6.42 * 1073741824.0));
  EXPECT_EQ(message.device_index, 0);
}

// The vision encoder failed at the start: the estimate does not include it, and an 8-bit cache does not help.
TEST(Posts, NothingIsLikelyWhereImagesFailed) {
  const Answer a = post(
      "vllm serve Qwen/Qwen2.5-VL-7B-Instruct --max-model-len 32768 --gpu-memory-utilization 0.9\n"
      "  File \"/vllm/worker/worker.py\", line 229, in determine_num_available_blocks\n    "
      "self.model_runner.profile_run()\n"
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.59 GiB. GPU 0 has a total capacity of 23.64 GiB "
      "of "
      "which 2.16 GiB is free.\n");
  ASSERT_TRUE(a.config.has_value());
  EXPECT_TRUE(a.report.diagnosis.likely_set.empty());
  for (const Remedy& remedy : a.report.diagnosis.remedies)
    EXPECT_FALSE(remedy.likely_alone && remedy.name != "gpu-memory-utilization") << remedy.name;
  EXPECT_TRUE(verdict(a.report).starts_with("cannot tell")) << verdict(a.report);
  EXPECT_TRUE(proposes(a, "--max-num-seqs"));
}

TEST(Posts, AModelOnAppleGetsNoOptionsOfDiffusers) {
  const Answer a = post(
      "MPS backend out of memory (MPS allocated: 8.95 GB, other allocations: 201.16 MB, max allowed: 9.07 GB). Tried "
      "to "
      "allocate 128.00 MB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory "
      "allocations (may cause system failure).\nrunning whisper large-v3\n");
  EXPECT_TRUE(proposes(a, "PYTORCH_MPS_HIGH_WATERMARK_RATIO"));
  EXPECT_FALSE(proposes(a, "pipe.enable_model_cpu_offload()"));
}

TEST(Posts, ARecipeByNameIsNotReadFromTheCommand) {
  const Answer a =
      post(std::string("tune run lora_finetune_single_device --config llama3/8B_lora_single_device\n") + kFull);
  EXPECT_FALSE(a.config.has_value()) << "its file says batch, length and checkpointing";
  EXPECT_TRUE(proposes(a, "batch_size: <half>")) << "torchtune's keys all the same";
}

TEST(Posts, AnArrayThatDoesNotFitIsReadInPieces) {
  const Answer a = post(
      "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 59.6 GiB for an array with shape (2000000, 4000) "
      "and "
      "data type float64\n");
  EXPECT_NE(a.report.diagnosis.remedies.front().set.find("mmap_mode"), std::string::npos);
  for (const Cause& cause : a.report.diagnosis.causes)
    EXPECT_EQ(cause.evidence.find("was ended"), std::string::npos) << "it raised an error";
}

Answer of_config(const std::string& text, const std::string& model, const std::string& gpu, int64_t gpus) {
  Request request;
  request.model = model;
  request.gpu = gpu;
  request.gpus = gpus;
  request.sequence = 2048;
  request.micro_batch = 1;
  return post(text, request);
}

TEST(Posts, ShardsThatFillTheNodeWaitOnTheHost) {
  const Answer a = of_config(
      "{\"zero_optimization\": {\"stage\": 3}, \"bf16\": {\"enabled\": true}, \"train_micro_batch_size_per_gpu\": 1}",
      "meta-llama/Llama-2-13b-hf", "rtx-3090", 4);
  EXPECT_TRUE(explained(a, "shards_fill_the_devices"));
  EXPECT_EQ(a.report.diagnosis.remedies[0].name, "offload-optimizer");
  EXPECT_EQ(a.report.diagnosis.remedies[1].name, "offload-parameters");
  const Answer roomy = of_config(
      "{\"zero_optimization\": {\"stage\": 3}, \"bf16\": {\"enabled\": true}, \"train_micro_batch_size_per_gpu\": 1}",
      "meta-llama/Llama-2-13b-hf", "h100-80gb", 8);
  EXPECT_FALSE(explained(roomy, "shards_fill_the_devices"));
}

TEST(Posts, AJobUnderDeepSpeedIsOfferedNoOptionOfFsdp) {
  const Answer a = of_config(
      "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\nmixed_precision: bf16\nnum_processes: 4\n",
      "meta-llama/Llama-2-7b-hf", "a100-40gb", 4);
  ASSERT_EQ(a.config->job.system, System::accelerate);
  EXPECT_TRUE(offers(a, "deepspeed_config.zero_stage: 3"));
  EXPECT_FALSE(offers(a, "fsdp"));
  EXPECT_EQ(a.report.patch.find("fsdp"), std::string::npos) << a.report.patch;
}

TEST(Posts, AVaeThatDecodesAllAtOnceDoesSoInTiles) {
  const Answer a = post("  File \"wan/textimage2video.py\", line 401, in t2v\n    videos = self.vae.decode(x0)\n" +
                        std::string(kFull));
  EXPECT_EQ(first_cause(a), "vae_decodes_the_whole_image");
  EXPECT_TRUE(proposes(a, "pipe.vae.enable_tiling()"));
  EXPECT_TRUE(proposes(a, "VAE Decode (Tiled)"));
  EXPECT_TRUE(proposes(a, "fewer frames"));
}

TEST(Posts, ComfyUiIsKnownByWhatItPrints) {
  const Answer a = post("torch.OutOfMemoryError: Allocation on device\n\nGot an OOM, unloading all loaded models.\n");
  EXPECT_TRUE(proposes(a, "--lowvram"));
  EXPECT_TRUE(proposes(a, "a lower resolution"));
}

TEST(Posts, AProgramForImagesFromTextIsADiffusionModel) {
  const Answer a = post("python scripts/img2img.py --init-img photo.jpg --strength 0.8\n" + std::string(kFull));
  EXPECT_TRUE(proposes(a, "model.half()"));
  EXPECT_TRUE(proposes(a, "a smaller image"));
  // Its training is different.
  const Answer training =
      post("python scripts/img2img.py\n    loss.backward()\n  File \"torch/_tensor.py\", line 492, in backward\n" +
           std::string(kFull));
  EXPECT_FALSE(offers(training, "enable_model_cpu_offload()"));
}

TEST(Posts, ImagesOfAVisionLanguageModelAreTokens) {
  const Answer a = post("swift sft --model_type qwen2-vl-7b-instruct --sft_type lora\n" + std::string(kFull));
  EXPECT_TRUE(proposes(a, "MAX_PIXELS"));
}

TEST(Posts, ATestThatFailsKeepsNoGraph) {
  const Answer a = post("train is ok.\ntest is error.\n" + std::string(kFull));
  EXPECT_TRUE(proposes(a, "torch.no_grad()"));
}

TEST(Posts, WeightsThatDoNotLoadMayComeInFourBits) {
  const Answer a = post(
      "    model = AutoModelForCausalLM.from_pretrained(\"meta-llama/Llama-2-13b-hf\").to(\"cuda\")\n"
      "  File \"/site-packages/torch/nn/modules/module.py\", line 1160, in convert\n"
      "    return t.to(device, dtype if t.is_floating_point() or t.is_complex() else None, non_blocking)\n" +
      std::string(kFull));
  EXPECT_TRUE(proposes(a, "load_in_4bit=True"));
}

TEST(Posts, UnslothIsToldInTheTrainersOptions) {
  const Answer a = post("==((====))==  Unsloth 2025.3\n   Batch size per device = 2\n" + std::string(kFull));
  EXPECT_TRUE(proposes(a, "per_device_train_batch_size"));
}

TEST(Posts, AProcessOfNoBytesIsSeenFromAContainer) {
  const Answer a = post(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 32.00 MiB. GPU 0 has a total capacity of 23.43 "
      "GiB "
      "of which 4.06 MiB is free. Including non-PyTorch memory, this process has 0 bytes memory in use. Of the "
      "allocated memory 23.03 GiB is allocated by PyTorch, and 15.67 MiB is reserved by PyTorch but unallocated.\n");
  EXPECT_FALSE(explained(a, "device_taken_at_start"));
  EXPECT_FALSE(proposes(a, "nvidia-smi"));
}

TEST(Posts, TheStageOfZeroIsReadFromWords) {
  Request request;
  request.parameters = "33B";
  request.gpus = 8;
  const Answer a = post("using deepspeed zero stage3, batch_size 1\n" + std::string(kFull), request);
  EXPECT_FALSE(offers(a, "fully_shard")) << "it is sharded already";
  EXPECT_TRUE(offers(a, "offload"));
}

TEST(Posts, AHarnessOfEvaluationTrainsNothing) {
  Request request;
  request.command = {"python3", "-m", "lmms_eval", "--model", "qwen2_vl", "--batch_size", "1", "--output_path", "out"};
  const Answer a = post(kFull, request);
  EXPECT_TRUE(proposes(a, "max_pixels"));
  EXPECT_FALSE(offers(a, "fully_shard"));
  EXPECT_FALSE(offers(a, "gradient_checkpointing"));
}

TEST(Posts, TheFirstScriptsOfStableDiffusionHaveNoPipeline) {
  Request request;
  request.command = {"python", "scripts/txt2img.py", "--prompt", "a horse", "--plms"};
  const Answer a = post("RuntimeError: CUDA out of memory.\n", request);
  EXPECT_TRUE(proposes(a, "model.half()"));
  EXPECT_TRUE(proposes(a, "--n_samples 1"));
}

TEST(Posts, APipelineWithoutATypeIsIn32Bits) {
  const std::string pipe = "pipe = MochiPipeline.from_pretrained(\"genmo/mochi-1-preview\"";
  const Answer plain = post(pipe + ")\npipe.enable_model_cpu_offload()\n" + kFull);
  EXPECT_TRUE(proposes(plain, "enable_sequential_cpu_offload()"));
  EXPECT_FALSE(offers(post(pipe + ", torch_dtype=torch.bfloat16)\n" + std::string(kFull)), "in 32 bits"));
}

TEST(Posts, AFolderNamedDreamBoothTrainsNothing) {
  const Answer a = post(
      "python -m scripts.animate --config a.yaml\n  path: models/DreamBooth_LoRA/x.safetensors\n  "
      "motion_module: mm.ckpt\n" +
      std::string(kFull));
  EXPECT_FALSE(explained(a, "diffusion_training"));
  EXPECT_FALSE(offers(a, "--gradient_checkpointing"));
}

TEST(Posts, AnUpscalersRequestIsNoAttentionScore) {
  const Answer a = post(
      "python inference_realesrgan.py --input inputs\nCUDA out of memory. Tried to allocate 1.12 GiB (GPU 0; 4.00 GiB "
      "total capacity; 2.41 GiB already allocated; 0 bytes free; 2.41 GiB reserved in total by PyTorch)\n");
  EXPECT_FALSE(explained(a, "attention_scores_of_an_image"));
  EXPECT_TRUE(proposes(a, "in tiles"));
}

TEST(Posts, SpeechModelsComeInSizes) {
  const Answer a = post("whisper audio.mp3 --model large\n" + std::string(kFull));
  EXPECT_TRUE(proposes(a, "distil-whisper"));
}

TEST(Posts, ASmallDeviceMayNeedAnotherModel) {
  const Answer a = post(
      "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 3.00 GiB total capacity; 2.10 GiB already allocated; "
      "14.36 "
      "MiB free; 2.10 GiB reserved in total by PyTorch)\n");
  EXPECT_TRUE(proposes(a, "a smaller model"));
}

TEST(Posts, AModelFileBehindThePagingFileHasNoLoaders) {
  const Answer a = post("the paging file is too small for this operation to complete. (os error 1455)\n");
  EXPECT_EQ(first_cause(a), "paging_file_behind_a_model");
  EXPECT_TRUE(proposes(a, "Virtual memory"));
}

TEST(Posts, QuantisedAtItsLoadItMustComeFromTheHost) {
  const Answer a = post("代码添加了int8量化，启动的时候还是报错显存不足\n" + std::string(kFull));
  EXPECT_TRUE(proposes(a, "without device_map"));
}

TEST(Posts, AnEnlargedImageGoesInTiles) {
  const Answer a = post("I tried to upscale 576*1024 image using R-ESRGAN 4x+\n" + std::string(kFull));
  EXPECT_TRUE(proposes(a, "in tiles"));
  EXPECT_FALSE(
      explained(post("super-resolution training, batch size 2\n" + std::string(kFull)), "image_enlarged_at_once"));
}

TEST(Posts, AFineTuningKeepsWhatEveryLayerNeeds) {
  const Answer a = post("try to finetune chatglm-6b\n" + std::string(kFull));
  EXPECT_TRUE(proposes(a, "gradient_checkpointing"));
  EXPECT_TRUE(proposes(a, "max_length"));
}

TEST(Posts, AVersionOfVllmIsAServer) {
  const Answer a =
      post("out of memory running a gptq model in vllm 0.2.7, it works in vllm 0.2.6\n" + std::string(kFull));
  EXPECT_TRUE(proposes(a, "enforce_eager") || proposes(a, "--enforce-eager"));
  EXPECT_FALSE(explained(a, "language_model_of_an_unknown_program"));
}

TEST(Posts, AChatTrainsNothing) {
  const Answer a = post("python server.py --model vicuna-7b --chat\ncontext 2096\n" + std::string(kFull));
  EXPECT_FALSE(explained(a, "language_model_of_an_unknown_program"));
  EXPECT_TRUE(proposes(a, "a shorter context"));
}

TEST(Posts, NothingIsSaidToBeLiveThatTheMessageDoesNotName) {
  const Answer a = post(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 3 has a total capacity of 184.00 "
      "GiB "
      "of which 2.21 GiB is free. Including non-PyTorch memory, this process has 181.77 GiB memory in use.\n");
  for (const Cause& cause : a.report.diagnosis.causes) EXPECT_EQ(cause.evidence.find("0 bytes of"), std::string::npos);
}

TEST(Posts, APreferenceTrainerIsALanguageModel) {
  const Answer a = post("out of memory error for training a model (using TF32) for DPO\n" + std::string(kFull));
  EXPECT_TRUE(proposes(a, "max_length"));
}

TEST(Posts, StableDiffusionHasNoDataLoader) {
  const Answer a = post("Stable Diffusion, 512x512\nRuntimeError: CUDA out of memory.\n");
  EXPECT_FALSE(proposes(a, "DataLoader"));
  EXPECT_TRUE(proposes(a, "n_samples 1"));
}

TEST(Posts, AFineTunedVideoModelIsNoLanguageModel) {
  const Answer a = post("OOM when fine-tune CogVideo5B-Diffusers Model\n" + std::string(kFull));
  EXPECT_EQ(first_cause(a), "diffusion_training");
  EXPECT_FALSE(explained(a, "language_model_of_an_unknown_program"));
  EXPECT_FALSE(explained(a, "diffusion_pipeline"));
}

TEST(Posts, AModelMadeBeforeItsShardingIsMadeInsideOfIt) {
  const Answer a = post("Zero (Stage-3 + offload)\nself.module.to(self.device)\nRuntimeError: CUDA out of memory.\n");
  EXPECT_TRUE(proposes(a, "zero.Init"));
}

TEST(Posts, AModelLargerThanItsDeviceWantsAnother) {
  const Answer a = post("python server.py --model vicuna-13b --chat\n" + std::string(kFull));
  EXPECT_EQ(first_cause(a), "model_too_large");
  EXPECT_TRUE(proposes(a, "a smaller model"));
  EXPECT_TRUE(proposes(a, "load_in_4bit=True"));
  EXPECT_FALSE(explained(post("python server.py --model vicuna-7b --chat\n" + std::string(kFull)), "model_too_large"));
  EXPECT_FALSE(
      explained(post("python server.py --model vicuna-13b-awq --chat\n" + std::string(kFull)), "model_too_large"));
  EXPECT_EQ(first_cause(post("loading llama-70b-gptq with exllama\n" + std::string(kFull))),
            "model_too_large_in_4_bits");
}

// Only prose, which mentions the stage: a training step is not to blame.
TEST(Posts, TheStageIsToldInWords) {
  for (const char* words : {"CUDA out of memory in the validation loop, the training itself is fine\n",
                            "the training goes well, and then it hits OOM when the evaluation starts\n",
                            "每次验证的时候都爆显存，训练没问题\n"}) {
    const Answer a = post(std::string("train.py epoch 3\n") + words);
    EXPECT_TRUE(proposes(a, "torch.no_grad()")) << words;
    EXPECT_FALSE(proposes(a, "optimizer.step()")) << words;
  }
  const Answer trainer =
      post("TrainingArguments, per_device_train_batch_size=1\nI get OOM once the evaluation begins\n");
  EXPECT_EQ(first_cause(trainer), "batch_of_the_evaluation");
  EXPECT_TRUE(proposes(trainer, "per_device_eval_batch_size=1"));
  const Answer saved = post("finetune qwen with fsdp on 4 gpus, it trains, but saving the model runs out of memory\n");
  EXPECT_EQ(first_cause(saved), "saving_on_the_device");
  EXPECT_TRUE(proposes(saved, "offload_to_cpu=True"));
  const Answer resumed = post("cuda out of memory as soon as I resume from epoch 12, a new run is fine\n");
  EXPECT_EQ(first_cause(resumed), "checkpoint_on_the_gpu");
  EXPECT_TRUE(proposes(resumed, "map_location=\"cpu\""));
  // Here evaluation goes well, and memory is what is saved.
  const Answer step = post("cuda out of memory in training, evaluation works\nI tried memory saving attention\n");
  EXPECT_FALSE(explained(step, "gradients_kept_in_evaluation"));
  EXPECT_FALSE(explained(step, "saving_on_the_device"));
  EXPECT_FALSE(explained(post("CUDA out of memory in retrieval training of bloom\n"), "gradients_kept_in_evaluation"));
}

TEST(Posts, AFailureIsToldInWords) {
  const Answer device = post("my 3090 goes OOM in the second epoch\n");
  ASSERT_EQ(device.report.incident.messages.size(), 1u);
  EXPECT_EQ(device.report.incident.messages[0].framework, "pytorch-cuda");
  const Answer host = post("32GB ram is not enough, it goes oom while loading\n");
  ASSERT_EQ(host.report.incident.messages.size(), 1u);
  EXPECT_EQ(host.report.incident.messages[0].framework, "host");
  EXPECT_TRUE(proposes(host, "swap"));
  EXPECT_TRUE(post("epoch 3 of 10, loss 0.2, zoom in on gpu 0\n").report.incident.messages.empty());
}

TEST(Posts, KerasIsNotTold) {
  const Answer a =
      post("from keras.models import Sequential\nmodel.fit(x, y, batch_size=256)\nthe gpu is out of memory\n");
  ASSERT_FALSE(a.report.incident.messages.empty());
  EXPECT_EQ(a.report.incident.messages[0].framework, "tensorflow");
  EXPECT_TRUE(proposes(a, "model.fit(..., batch_size=<half>)"));
  EXPECT_FALSE(offers(a, "DataLoader"));
}

TEST(Posts, VerlIsKnownByItsName) {
  const Answer a = post("GRPO of a 7B model in verl: " + std::string(kShared));
  EXPECT_TRUE(proposes(a, "actor_rollout_ref.rollout.gpu_memory_utilization"));
  EXPECT_FALSE(offers(a, "DataLoader"));
  EXPECT_FALSE(explained(post("two layers overlap and verlet lists\n" + std::string(kShared)), "training_by_verl"));
}

// OpenRLHF does not have the keys of other trainers, set or not.
TEST(Posts, OpenRlhfIsOfferedNoOtherSpelling) {
  const Answer a =
      post(std::string("python -m openrlhf.cli.train_ppo_ray --gradient_checkpointing --adam_offload\n") + kShared);
  EXPECT_FALSE(offers(a, "gradient_checkpointing_enable"));
  EXPECT_FALSE(offers(a, "DataLoader"));
  EXPECT_FALSE(offers(a, "autocast"));
}

TEST(Posts, VllmPlansForTheContextInItsLog) {
  const std::string engine =
      "INFO llm_engine.py:161] Initializing an LLM engine (v0.6.0) with config: model='m', max_seq_len=131072, "
      "dtype=torch.bfloat16\n";
  const Answer a = post(engine + kFull);
  EXPECT_TRUE(proposes(a, "--max-model-len"));
  const Answer cache = post(engine +
                            "ValueError: No available memory for the cache blocks. Try increasing "
                            "`gpu_memory_utilization` when initializing the engine.\n");
  EXPECT_TRUE(proposes(cache, "--max-model-len"));
  EXPECT_FALSE(explained(post("vllm serve m --max-model-len 4096\n" + engine + kFull), "context_of_the_model"));
}

TEST(Posts, ADeviceThatWasTakenBefore) {
  const Answer start = post(
      "name: GeForce GTX 1080\nTotal memory: 7.92GiB\nFree memory: 190.31MiB\nE tensorflow/stream_executor/cuda/"
      "cuda_driver.cc:1002] failed to allocate 190.31M (199557120 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY\n");
  EXPECT_EQ(first_cause(start), "taken_before_this_program");
  EXPECT_TRUE(proposes(start, "nvidia-smi"));
  const std::string error = "RuntimeError: CUDA out of memory.\n";
  EXPECT_TRUE(
      explained(post("| N/A   36C    P0    41W / 300W |  12799MiB / 16280MiB |      0%      Default |\n" + error),
                "taken_before_this_program"));
  EXPECT_FALSE(
      explained(post("| N/A   36C    P0    41W / 300W |  12799MiB / 16280MiB |     97%      Default |\n" + error),
                "taken_before_this_program"));
}

TEST(Posts, WhatWentWellForEpochs) {
  const Answer a = post("RuntimeError: CUDA error: out of memory\nthe error comes after 3 epochs\n");
  EXPECT_EQ(first_cause(a), "failed_after_whole_epochs");
  EXPECT_TRUE(proposes(a, "loss.item()"));
  EXPECT_TRUE(proposes(a, "a smaller batch there"));
}

TEST(Posts, WindowsCommitsWhatTheDeviceTakes) {
  const Answer a = post("CUDA_ERROR_OUT_OF_MEMORY: out of memory\nWindows 11, 24 GB card\n");
  EXPECT_EQ(first_cause(a), "commit_limit_of_windows");
  EXPECT_TRUE(proposes(a, "paging file"));
}

TEST(Posts, ASceneKeepsItsPhotographs) {
  const Answer a = post("python train.py -s data\n    rendered = _C.rasterize_gaussians(*args)\n" + std::string(kFull));
  EXPECT_EQ(first_cause(a), "scenes_of_gaussians");
  EXPECT_TRUE(proposes(a, "--data_device cpu"));
}

TEST(Posts, MemoryInPiecesByTheLog) {
  const Answer a = post("CUDA out of memory at step 4, it looks like memory fragmentation\n");
  EXPECT_TRUE(proposes(a, "expandable_segments:True"));
}

TEST(Posts, AToolboxValidatesWithoutGradients) {
  const Answer a = post("yolov8: the epoch is ok, the validation ends with CUDA out of memory\n");
  EXPECT_EQ(first_cause(a), "evaluation_by_yolo");
  EXPECT_TRUE(proposes(a, "half of batch="));
  EXPECT_FALSE(offers(a, "with torch.no_grad(): around evaluation"));
}

TEST(Posts, AServedModelLargerThanItsDevice) {
  const Answer a = post("vllm serve Qwen2.5-14B on an RTX 4090\ntorch.OutOfMemoryError: CUDA out of memory.\n");
  EXPECT_EQ(first_cause(a), "served_model_too_large");
  EXPECT_TRUE(proposes(a, "AWQ, GPTQ"));
  EXPECT_TRUE(proposes(a, "a smaller model"));
  EXPECT_FALSE(explained(post("vllm serve Qwen2.5-14B on 2x RTX 4090\ntorch.OutOfMemoryError: CUDA out of memory.\n"),
                         "served_model_too_large"));
}

TEST(Posts, StatesOfAWholeModelAreSpared) {
  const auto seen = [](const std::string& words) {
    const std::vector<SeenSituation> all = post(words + kFull).report.diagnosis.situations;
    return std::any_of(all.begin(), all.end(), [](const SeenSituation& s) { return s.name == "states_too_large"; });
  };
  EXPECT_TRUE(seen("I fine tune mistral-7b on my card\n"));
  EXPECT_FALSE(seen("I fine tune mistral-7b with lora\n"));
  EXPECT_FALSE(seen("I fine tune a model of 0.5b\n"));
}

TEST(Posts, AFullDeviceIsNoMatterOfWsl) {
  const Answer device = post("wsl2, Ubuntu 20.04\n" + std::string(kFull));
  EXPECT_FALSE(offers(device, ".wslconfig"));
  EXPECT_TRUE(offers(post("loading the model in WSL Ubuntu 22.04\nKilled\n"), ".wslconfig"));
}

TEST(Posts, TheHostGrowsToo) {
  const Answer a = post("out of memory in training\nthe cpu ram keeps increasing\ntotal += loss\n");
  ASSERT_EQ(a.report.incident.messages.size(), 1u);
  EXPECT_EQ(a.report.incident.messages[0].framework, "host");
  EXPECT_TRUE(explained(a, "history_kept_on_the_host"));
  EXPECT_TRUE(proposes(a, "loss.item()"));
}

TEST(Posts, VllmQuantisesNothingOnAnotherOption) {
  const Answer a = post("vllm with load_in_4bit = True\ntorch.OutOfMemoryError: CUDA out of memory.\n");
  EXPECT_EQ(first_cause(a), "quantised_by_another_option");
  EXPECT_TRUE(proposes(a, "AWQ, GPTQ"));
}

TEST(Posts, ACheckpointOfLightningIsSaved) {
  const Answer a = post("our model checkpoint callback ends with CUDA out of memory under FSDP\n");
  EXPECT_EQ(first_cause(a), "saving_on_the_device");
}

TEST(Posts, NnUNetHasPlans) {
  const Answer a = post("nnUNetv2_train 3 2d 0\n" + std::string(kFull));
  EXPECT_TRUE(proposes(a, "batch_size in the plans"));
  EXPECT_TRUE(proposes(a, "patch_size"));
}

}  // namespace
}  // namespace headroom::doctor
