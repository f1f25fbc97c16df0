// Programs with means of their own: rollouts, replay memories, scenes, caches, metrics, speech, detectors; and what
// their posts do not say. Sentences of our own.
#include "first_screen.h"

namespace headroom::doctor {
namespace {

TEST(OwnMeans, AReplayMemoryFillsTheHost) {
  const std::string text = first_screen(
      "My agent runs out of RAM after 5 epochs, the replay buffer of 500k frames only ever grows. The box has 64GB.");
  expect_on(text, "1 a smaller replay memory");
  expect_none_of(text, {"1 DataLoader", "batches read from disk"});
}

TEST(OwnMeans, AReplayMemoryOnTheDevice) {
  const std::string text =
      first_screen("CUDA out of memory after 40k frames of DQN training: my replay memory keeps tensors");
  expect_on(text, "the replay memory on the host");
}

TEST(OwnMeans, AScenesPhotographsFillTheHost) {
  const std::string text = first_screen("ns-train nerfacto on 2500 photographs: the process is killed while it loads");
  expect_on(text, "1 fewer photographs");
  expect_none_of(text, {"DataLoader", "low_cpu_mem_usage"});
}

TEST(OwnMeans, ACacheThatTheCommandPasses) {
  const std::string text =
      first_screen("python train.py --data birds.yaml --weights yolov5s.pt --cache\nthe process was killed, 32 GB RAM");
  expect_on(text, "1 without --cache");
  expect_on(text, "--workers 0");
  expect_none_of(text, {"DataLoader("});
}

TEST(OwnMeans, MetricsKeepTheirState) {
  const std::string text = first_screen(
      "GPU memory keeps growing from epoch to epoch until it is out of memory. I compute IoU and F1 by torchmetrics.");
  expect_on(text, "1 metric.reset()");
}

TEST(OwnMeans, ADeviceThatIsHardlyUsed) {
  for (const char* post : {"CUDA out of memory in training, although the GPU memory usage is low on my 80GB card",
                           "训练报错 CUDA out of memory，可是显存占用很低，四张80G的卡"})
    expect_on(first_screen(post), "1 nvidia-smi while it fails");
  expect_none_of(first_screen("CUDA out of memory in training, the GPU memory is full"), {"while it fails"});
}

TEST(OwnMeans, SamplesThatWaitInPinnedMemory) {
  const std::string text = first_screen(
      "2021-03-02 10:00:00.1: E tensorflow/stream_executor/cuda/cuda_driver.cc:868] failed to alloc 8589934592 bytes "
      "on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory\nW cuda_host_allocator.h:44] could not allocate pinned host "
      "memory of size: 8589934592");
  expect_on(text, "1 fewer samples that wait");
  expect_none_of(text, {"low_cpu_mem_usage"});
}

TEST(OwnMeans, AModelThatWorksIsOnlyComparedWith) {
  const char* served = "vllm serve my/vision-11b on one A100 80GB: CUDA out of memory. ";
  expect_none_of(first_screen(std::string(served) + "The same command with llava-1.5-7b works fine."), {"to one size"});
  expect_on(first_screen("CUDA out of memory with llava-1.5-7b in inference of one image"), "to one size");
}

TEST(OwnMeans, AListOfPackagesHasNoMetrics) {
  expect_none_of(
      first_screen("Memory keeps growing until CUDA out of memory, in training\ntorch 2.1\ntorchmetrics==1.2.0"),
      {"metric.reset()"});
}

TEST(OwnMeans, AMachineOfItsKindOnlyWithoutAGpu) {
  expect_none_of(first_screen("out of memory in training on one GPU; on a CPU machine it works"), {"MEMORY host"});
}

TEST(OwnMeans, ACacheOfKeysIsNoCacheOfImages) {
  expect_none_of(first_screen("./llama-server -m m.gguf --cache-type-k q8_0\nKilled, my machine has 16 GB RAM"),
                 {"without --cache"});
}

TEST(OwnMeans, TensorflowBesideJaxStaysOffTheDevice) {
  const std::string text = first_screen(
      "My JAX training reads its data by tfds and ends with RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
      "2147483648 bytes.");
  expect_on(text, "1 tf.config.set_visible_devices([], \"GPU\")");
  expect_none_of(first_screen("jax.jit: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 214748 bytes."),
                 {"set_visible_devices"});
}

TEST(OwnMeans, Ctranslate2HasTypesAndNoGradients) {
  const std::string text = first_screen(
      "File \"D:\\speech\\run.py\", line 8, in generate_segments\nfaster_whisper: RuntimeError: CUDA failed with error "
      "out of memory");
  expect_on(text, "compute_type=\"int8\"");
  expect_on(text, "best_of=1");
  expect_none_of(text, {"no_grad", "optimizer"});
}

TEST(OwnMeans, InterfacesComputeWithoutGradients) {
  const std::string text = first_screen(
      "ComfyUI: always OOM for inference of flux with the Q8_0 file on a 12GB card, --lowvram is set: CUDA out of "
      "memory");
  expect_none_of(text, {"no_grad", "NF4 or GGUF model where"});
  expect_on(text, "Q5_K_S or Q4_K_S");
}

TEST(OwnMeans, TilesOfAnInterface) {
  const std::string text = first_screen(
      "Tiled Diffusion throws out of memory error on my 3070ti 8GB\n\nThe PC: 32GB RAM, Windows 11, fast SSD");
  expect_on(text, "decoder tile size 128");
  expect_none_of(text, {"host memory ran out", "DataLoader"});
}

TEST(OwnMeans, ARolloutOfSwift) {
  const std::string text = first_screen(
      "ms-swift GRPO with vllm_mode colocate: after 20 steps wake_up fails with CUDA out of memory, qwen 7B");
  expect_on(text, "--vllm_gpu_memory_utilization 0.4");
  expect_on(text, "--max_completion_length");
}

TEST(OwnMeans, TheLengthOfMistralFinetune) {
  expect_on(
      first_screen("mistral-finetune of a 7B on one A10G: torch.OutOfMemoryError: CUDA out of memory in training"),
      "seq_len: 8192");
}

TEST(OwnMeans, AMaskRcnnOfDetectron) {
  const std::string text = first_screen(
      "training of mask_rcnn_R_50_FPN_3x.yaml with detectron2 runs out of memory on one 2080 Ti\nSOLVER:\n  "
      "IMS_PER_BATCH: 8");
  expect_on(text, "IMS_PER_BATCH");
  expect_none_of(text, {"IMAGES_PER_GPU", "BACKBONE", "TF_FORCE_GPU_ALLOW_GROWTH"});
}

TEST(OwnMeans, ADetectorsImagesChangeTheirSize) {
  const std::string text = first_screen(
      "Fine tuning of Deformable DETR on COCO: memory keeps growing with each step, then CUDA out of memory");
  expect_on(text, "1 export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  expect_none_of(text, {"language model"});
}

TEST(OwnMeans, TheNumberOfAProcessInAContainer) {
  const std::string own = first_screen(
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacty of 39.39 "
      "GiB of which 1.19 GiB is free. Process 4321 has 38.20 GiB memory in use.");
  expect_on(own, "this process's own");
  expect_none_of(own, {"kill 4321", "are held by other processes"});
  const std::string other = first_screen(
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacty of 39.39 "
      "GiB of which 1.19 GiB is free. Process 4321 has 30.20 GiB memory in use.");
  expect_on(other, "process 4321 holds 30.20 GiB");
}

TEST(OwnMeans, AProgramOnTheCpuTakesTiles) {
  const std::string text =
      first_screen("out of memory in inference of a 4096x4096 image by a Keras network, on a CPU machine of the cloud");
  expect_on(text, "OUT OF MEMORY host");
  expect_on(text, "overlapping tiles");
}

TEST(OwnMeans, TheSameErrorInTheEvaluation) {
  const std::string text = first_screen(
      "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4077222400 bytes. Error code 12 (Cannot "
      "allocate memory)\n\nThe training works. In the evaluation I always get this error.");
  expect_on(text, "1 results reduced or written batch by batch");
  expect_on(text, "several processes");
}

TEST(OwnMeans, ATrainingThatOnlySpeaksOfATest) {
  const std::string text = first_screen(
      "I am trying to test your network on my own scans. CUDA out of memory soon after the training starts, also with "
      "batch size 1");
  expect_none_of(text, {"no_grad"});
}

TEST(OwnMeans, WhatWasBuiltIsNotTheBuild) {
  expect_none_of(first_screen("重新编译后还是报错，内存溢出，机器有32G内存"), {"MAX_JOBS"});
}

TEST(OwnMeans, ACheckpointIsNoEarlierRun) {
  const std::string text = first_screen(
      "Batch 128 fits from scratch, when resuming only 96 does: CUDA out of memory. The checkpoint is never freed.");
  expect_on(text, "map_location=\"cpu\"");
  expect_none_of(text, {"kill -9", "fuser"});
}

TEST(OwnMeans, CheckpointingThatIsPassed) {
  const std::string text = first_screen(
      "deepspeed train_it.py --batch-size 16 --checkpoint-activations --fp16\nCUDA out of memory in training");
  expect_on(text, "--batch-size 8");
  expect_none_of(text, {"gradient_checkpointing_enable", "train_micro_batch_size_per_gpu"});
}

TEST(OwnMeans, AThirdIsNoBatchOfOne) {
  expect_none_of(first_screen("训练OOM，把batch_size调为默认值的1/3，还是OOM"), {"the smallest batch fails"});
}

}  // namespace
}  // namespace headroom::doctor
