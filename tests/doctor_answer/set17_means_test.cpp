// One image at once, losses that are summed, weights that are divided and one row that is too much, long rows, merges,
// tasks of a batch system, and the trainers' own words for all of it. Sentences of our own.
#include "first_screen.h"

namespace headroom::doctor {
namespace {

TEST(OneImage, IsCutIntoTiles) {
  const std::string text = first_screen("Denoising of my photo, 5200x3900 pixels, ends with CUDA out of memory.");
  expect_on(text, "1 in tiles");
  expect_none_of(text, {"batch_size", "nvidia-smi"});
  const std::string flow = first_screen("Optical flow of 4K pictures with a pretrained network: CUDA out of memory");
  expect_on(flow, "1 in tiles");
}

TEST(OneImage, HasSmallerTilesWhereItHasTilesByNow) {
  const std::string text = first_screen(
      "I restore a picture of 5000x4000 with --tile 800 on my card, and it is CUDA out of memory all the same");
  expect_on(text, "1 smaller tiles");
  expect_none_of(text, {"accumulation"});
}

TEST(OneImage, OnTheHost) {
  const std::string text = first_screen(
      "Masks of a large image (400 MB) are made by predict.py. The process stops: not enough RAM, I have 16 GB.");
  expect_on(text, "1 the image in overlapping tiles");
  expect_none_of(text, {"num_workers", "low_cpu_mem_usage"});
  const std::string scan =
      first_screen("My program is killed when it opens an orthophoto, all 32 GB of RAM are in use");
  expect_on(scan, "overlapping tiles");
}

TEST(OneImage, OnlyLargerOnesFail) {
  const std::string text = first_screen(
      "My segmentation network on 900x900 images ends with CUDA out of memory. With 448x448 images the training is "
      "fine.");
  expect_on(text, "1 train on crops");
  expect_none_of(text, {"nvidia-smi"});
}

TEST(OneImage, NotOfATraining) {
  expect_none_of(first_screen("Training of a denoiser on 256x256 patches, batch size 16: CUDA out of memory"),
                 {"there is no batch to halve"});
}

TEST(Growth, OfADeviceWithoutAFailure) {
  for (const char* post : {"Constant increase of GPU memory\n\nI add the losses of all batches, as in sums[name]",
                           "My VRAM usage rises with each epoch", "显存占用越来越高\n每个epoch都涨一点"}) {
    const std::string text = first_screen(post);
    expect_on(text, "loss.item()");
    expect_none_of(text, {"NO OUT-OF-MEMORY"});
  }
  expect_none_of(first_screen("GPU memory of my training stays the same, the loss rises with each epoch"),
                 {"loss.item()"});
}

TEST(Growth, OfTensorflowHasNoGraphsOfLosses) {
  const std::string text =
      first_screen("With Keras the GPU memory keeps getting larger as I call fit() for each subject");
  expect_on(text, "predict_on_batch");
  expect_none_of(text, {"loss.item()"});
}

TEST(Growth, SumsOfLossesInCode) {
  const std::string lost =
      "RuntimeError: CUDA out of memory. Tried to allocate 30.00 MiB (GPU 0; 10.76 GiB total capacity; 9.50 GiB "
      "already "
      "allocated; 4.00 MiB free; 9.80 GiB reserved in total by PyTorch)\n";
  expect_on(first_screen("    val_loss[name] += losses[name]\n" + lost), "1 total += loss.item()");
  expect_none_of(first_screen("    val_loss[name] += losses[name].item()\n" + lost), {"`val_loss"});
  expect_none_of(first_screen("    loss += 0.1 * aux_loss\n" + lost), {"`loss += "});
}

TEST(Weights, DividedByFabricOrLightning) {
  expect_on(first_screen(
                "lit-gpt, finetune/full.py of a 7B model on 8 A100: CUDA out of memory, even with micro_batch_size 1"),
            "1 FSDPStrategy(..., cpu_offload=True)");
  expect_on(
      first_screen("With Lightning I train all weights of a 13B LLaMA on 8 GPUs with strategy fsdp and batch size 1: "
                   "CUDA out of memory"),
      "1 Trainer(strategy=FSDPStrategy(cpu_offload=True))");
}

TEST(Weights, DividedByOtherTrainers) {
  const auto first = [](const std::string& trainer) {
    return first_screen(trainer + " trains all weights of a 7B LLaMA on 4 GPUs with batch size 1: CUDA out of memory");
  };
  expect_on(first("accelerate launch with fsdp"), "1 accelerate config: fsdp_config: fsdp_offload_params: true");
  expect_on(first("llama-recipes with --enable_fsdp"), "1 --fsdp_config.fsdp_cpu_offload True");
  expect_on(first("The script with --fsdp \"full_shard auto_wrap\""), "1 --fsdp \"full_shard auto_wrap offload\"");
  expect_on(first("torchtune's full_finetune_distributed"), "1 fsdp_cpu_offload: True");
  expect_on(first("A LLaMA-Factory job under zero3"), "1 deepspeed: examples/deepspeed/ds_z3_offload_config.json");
}

TEST(Weights, WholeOnEveryDevice) {
  const std::string text = first_screen(
      "Full tuning of an 8B model on 4 GPUs runs out of memory, with batch size 1 and max_length 128 as well.");
  expect_on(text, "1 weights and states divided over the devices");
  expect_on(text, "GPUs with more memory");
  expect_none_of(text, {"max_length=512", "fully_shard"});
  expect_on(first_screen("ms-swift 全参训练 7B 模型，4卡，per_device_train_batch_size 1，显存不足"),
            "1 --deepspeed zero3");
}

TEST(Weights, AnOffloadThatIsOnIsNotTheFirstStep) {
  const std::string text = first_screen(
      "Full training of a 70B LLaMA under DeepSpeed zero3 with offload of everything, batch size 1, on 8 GPUs. It "
      "still "
      "runs out of memory.");
  expect_none_of(text, {"1 \"zero_optimization\"", "1 \"offload"});
}

TEST(Weights, TheStageOfALogIsTheStage) {
  Request request;
  request.gpu = "a100-80gb";
  request.parameters = "30B";
  const std::string text =
      first_screen("全参 DPO 训练，采用 deepspeed zero3，batch size 1，cutoff_len 4096 还是 OOM", request);
  expect_none_of(text, {"without its stage", "max_length=512", "FITS yes"});
}

TEST(LongRows, OfLlamaFactory) {
  const std::string text = first_screen("用 lora 微调 7B，cutoff_len = 12000，显存溢出");
  expect_on(text, "1 flash_attn: fa2");
  expect_on(text, "cutoff_len: <half>");
  expect_none_of(first_screen("LLaMA-Factory, flash_attn: fa2, cutoff_len = 12000: 显存溢出"), {"1 flash_attn"});
}

TEST(LongRows, OfAxolotlArePacks) {
  const std::string text = first_screen(
      "The axolotl QLoRA example wants to allocate 500 GB of memory on my GPU with 80 GB, it fails with out of memory");
  Request request;
  request.gpu = "a100-80gb";
  const std::string sized = first_screen(
      "The axolotl QLoRA example wants to allocate 500 GB of memory on my GPU, it fails with CUDA out of memory",
      request);
  expect_on(sized, "1 sample_packing: false");
  expect_none_of(text, {"LoRA on a base in 4 bits"});
}

TEST(LongRows, OfTransformers) {
  const std::string text =
      first_screen("SFTTrainer with max_seq_length=16384 on a 7B Mistral, 48 GB: CUDA out of memory");
  expect_on(text, "flash_attention_2");
  expect_on(text, "per_device_train_batch_size=<half>");
  expect_none_of(text, {"DataLoader("});
}

TEST(FewBits, OfATrainingAreNotAQuantisation) {
  for (const char* post : {"P-Tuning 微调时加了 --quantization_bit 4 进行量化，还是显存不足",
                           "LoRA finetuning of a 6B model with 8bit quantization: CUDA out of memory"})
    expect_none_of(first_screen(post), {"calibration", "before they are quantised"});
  expect_on(first_screen("微调后用 AutoGPTQ 量化时显存不足"), "calibration");
}

TEST(Servers, AnotherOneIsOnlyCompared) {
  const std::string text = first_screen("vLLM v0.9 of an 8B Qwen on a 4090 is OOM. SGLang works fine with it.");
  expect_on(text, "--gpu-memory-utilization");
  expect_none_of(text, {"--mem-fraction-static"});
  expect_on(first_screen("sglang 0.4 of an 8B Qwen on a 4090 is OOM at the start. vllm works fine with it."),
            "--mem-fraction-static");
}

TEST(Servers, AVideoIsProfiled) {
  const std::string text = first_screen(
      "Encoder cache will be initialized with a budget of 90000 tokens, and profiled with 1 video items of the maximum "
      "feature size.\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total "
      "capacity "
      "of 47.50 GiB of which 2.00 GiB is free.\nvllm serve of a VL model");
  expect_on(text, "1 --limit-mm-per-prompt");
}

TEST(Servers, AContextThatWasAskedFor) {
  const std::string text =
      first_screen("vllm serve MODEL-72B -tp 4 --max-model-len 100000: CUDA out of memory at its start");
  expect_on(text, "1 --max-model-len");
}

TEST(Host, FilesOfLlamaCpp) {
  const std::string text =
      first_screen("A 30B q5_K_M takes too much of my RAM. I need a context of 2048 tokens only, where is it set?");
  expect_on(text, "1 -c ");
  expect_none_of(text, {"NO OUT-OF-MEMORY", "DataLoader"});
  expect_on(first_screen("LM Studio is eating up my RAM with a 20B gguf and a long context"), "Context Length");
}

TEST(Host, AMergeInANotebook) {
  const std::string text = first_screen(
      "unsloth in Colab stops at merging weights of a 13B model: session crashed after using all available RAM");
  expect_on(text, "more host memory (RAM)");
  expect_on(text, "the adapter alone");
  expect_none_of(text, {"ZeRO", "FSDP"});
  expect_none_of(first_screen("merge_and_unload() of a 7B LoRA: the process is killed, 16 GB of RAM"),
                 {"ZeRO stage 3"});
}

TEST(Host, TasksOfABatchSystem) {
  const std::string text = first_screen(
      "srun: error: node3: task 17: Out Of Memory\nslurmstepd: error: Detected 1 oom-kill event(s) in step 5.0 "
      "cgroup.\n"
      "The ocean model runs with 96 tasks.");
  expect_on(text, "--exclusive");
  expect_on(text, "--ntasks-per-node");
  expect_none_of(text, {"DataLoader", "low_cpu_mem_usage"});
}

TEST(Devices, ASmallOneAndALanguageModel) {
  const std::string text = first_screen(
      "Finetuning of BERT for tagging. I reduced the batch size, it did not help.\nRuntimeError: CUDA out of memory. "
      "Tried "
      "to allocate 90.00 MiB (GPU 0; 4.00 GiB total capacity; 3.10 GiB already allocated; 8.00 MiB free; 3.20 GiB "
      "reserved "
      "in total by PyTorch)");
  expect_on(text, "1 a larger GPU");
}

TEST(Devices, SixteenBitsOfANamedOne) {
  Request request;
  request.gpu = "16GiB";
  request.gpus = 4;
  request.parameters = "3B";
  const std::string text = first_screen("DeepSpeed zero 3 of a 3B T5 on 4 V100 takes too much memory", request);
  expect_none_of(text, {"bf16"});
}

TEST(Programs, HaveTheirOwnWordsForIt) {
  const std::string api = first_screen(
      "ResourceExhaustedError: OOM when allocating tensor with shape[16,640,640,32]\nI train with the TensorFlow "
      "Object "
      "Detection API, 8 GB");
  expect_on(api, "1 train_config { batch_size");
  expect_none_of(api, {"model.fit("});
  expect_on(first_screen("A GNN over all nodes of ogbn-arxiv: CUDA out of memory on 12 GB"), "NeighborLoader");
  const std::string vectors =
      first_screen("model.encode( of 400000 texts with sentence-transformers: CUDA out of memory");
  expect_on(vectors, "1 model.encode(texts, batch_size=8)");
  expect_none_of(vectors, {"max_new_tokens"});
  const std::string dreambooth =
      first_screen("Dreambooth LoRA of Stable Diffusion XL, training on 10 GB: CUDA out of memory");
  expect_on(dreambooth, "1 --gradient_checkpointing");
  expect_none_of(dreambooth, {"enable_model_cpu_offload"});
}

TEST(Programs, OfMegatron) {
  const std::string text = first_screen("Megatron-LM, 30B on 8 GPUs, batch size 1: CUDA out of memory in pretraining");
  expect_on(text, "1 --tensor-model-parallel-size 2");
  expect_none_of(text, {"fully_shard"});
}

TEST(Programs, NoneIsAskedForAUnnamedGpu) {
  const std::string text =
      first_screen("70B Q4_K_M on a 3090 with llama-server -ngl 99: cudaMalloc failed: out of memory");
  expect_none_of(text, {"{gpu}"});
}

TEST(Sound, ALongRecordingIsCut) {
  const std::string text =
      first_screen("RuntimeError: CUDA out of memory in inference of wav2vec2 on a long recording");
  expect_on(text, "1 the recording in pieces");
  expect_none_of(text, {"so-vits"});
}

TEST(Host, TablesAreReadInParts) {
  const std::string text = first_screen("pandas reads a CSV of 60 GB on a node with 64 GB of RAM: Killed");
  expect_on(text, "1 not all at once");
}

TEST(Host, RolloutsHaveNoLoaderOfTheirOwn) {
  const std::string text = first_screen("verl GRPO 训练，host memory 一直上涨，最后 ray OOM，进程被杀");
  expect_none_of(text, {"1 DataLoader"});
}

TEST(Programs, AllVectorsWithAllOthers) {
  const std::string text = first_screen(
      "RuntimeError: CUDA out of memory. Tried to allocate 90.00 GiB (GPU 0; 23.69 GiB total capacity; 1.00 GiB "
      "already "
      "allocated; 22.00 GiB free; 1.10 GiB reserved in total by PyTorch)\nIt is the pairwise distance of all my "
      "vectors.");
  expect_on(text, "1 a block of rows at a time");
  expect_none_of(text, {"1 crop"});
}

TEST(Host, ProcessesOfTheProgram) {
  const std::string text = first_screen("joblib with n_jobs=-1 fits 200 models, the pod of 8Gi is OOMKilled");
  expect_on(text, "1 fewer processes at once");
  expect_none_of(text, {"DataLoader"});
}

TEST(Servers, TheShareOfADeviceIsNoFailure) {
  const std::string text =
      first_screen("Why does vLLM take 70 GB of GPU memory, although the model has 3B parameters only?");
  expect_on(text, "MEMORY IN USE");
  expect_on(text, "--gpu-memory-utilization");
  expect_none_of(text, {"NO OUT-OF-MEMORY", "OUT OF MEMORY"});
}

TEST(Weights, GatheredForASave) {
  const std::string text =
      first_screen("Under deepspeed zero3 the training is fine, saving the model ends with CUDA out of memory");
  expect_on(text, "1 \"stage3_gather_16bit_weights_on_model_save\": false");
}

}  // namespace
}  // namespace headroom::doctor
