// Remedies in the spelling of the post's own program and system, without what the post has already. Sentences of our
// own.
#include "first_screen.h"

namespace headroom::doctor {
namespace {

constexpr const char* kInPieces =
    "RuntimeError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 0; 24.00 GiB total capacity; 7.10 GiB already "
    "allocated; 8.20 GiB free; 13.00 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try "
    "setting max_split_size_mb to avoid fragmentation.\n";

TEST(Respelling, WindowsHasNoExpandableSegments) {
  for (const char* system : {"File \"C:\\tools\\run.py\", line 3, in run", "OS: win10", "I start it in PowerShell"}) {
    const std::string text = first_screen(std::string(kInPieces) + system);
    expect_none_of(text, {"expandable_segments"});
    expect_on(text, "a larger paging file");
  }
  expect_on(first_screen(std::string(kInPieces) + "a transformer with shifted windows, on Ubuntu"),
            "expandable_segments");
}

TEST(Respelling, ThePackageOfLlamaCppTakesArguments) {
  const std::string text = first_screen(
      "cudaMalloc failed: out of memory\nllm = Llama(model_path=\"m.gguf\", n_gpu_layers=-1)\nllama_model_loader: "
      "loaded "
      "meta data from m.gguf");
  expect_on(text, "n_gpu_layers=<half of the layers>");
  expect_none_of(text, {"--n-gpu-layers", "--ctx-size", "--cache-type-k", "whole training context"});
}

TEST(Respelling, TheFirstTensorflowHasSessions) {
  const std::string text = first_screen(
      "tensorflow-gpu==1.4, tf.Session() \nResourceExhaustedError: OOM when allocating tensor with "
      "shape[64,128,128,64]");
  expect_on(text, "gpu_options.allow_growth = True");
  expect_none_of(text, {"TF_FORCE_GPU_ALLOW_GROWTH", "model.fit("});
}

TEST(Respelling, ThePostsOwnOptionOfTheBatch) {
  const std::string text =
      first_screen("python run.py --lr 0.1 --batch-size 48\nRuntimeError: CUDA error: out of memory, in training");
  expect_on(text, "--batch-size 24");
  expect_none_of(text, {"DataLoader(..., batch_size"});
  expect_none_of(first_screen("python run.py --eval-batch-size 48\nRuntimeError: CUDA error: out of memory"),
                 {"--eval-batch-size 24"});
}

TEST(Respelling, ShortOptionsOfTheBatch) {
  expect_on(first_screen("YOLOX: python tools/train.py -d 1 -b 64 --fp16, CUDA out of memory in training"), "-b 32");
  expect_on(first_screen("yolo train model=yolov8m.pt batch=16 imgsz=640: CUDA out of memory"), "batch=8");
}

TEST(Respelling, AValidationByItsOwnToolbox) {
  const std::string mmdet = first_screen("mmdet: CUDA out of memory during validation, the training works");
  expect_on(mmdet, "val_dataloader.batch_size=1");
  expect_none_of(mmdet, {"YOLO", "Lightning"});
}

TEST(Respelling, ArgumentsInForceAreNotOfferedAgain) {
  const std::string text = first_screen(
      "The process is killed while it is loading the model, no other message\n"
      "m = AutoModelForCausalLM.from_pretrained(\"some/model\", device_map='auto', torch_dtype=torch.bfloat16)");
  expect_none_of(text, {"device_map=\"auto\"", "torch_dtype=torch.float16"});
  expect_on(text, "a checkpoint in shards");
}

TEST(Respelling, WhatIsOnIsNotOffered) {
  const std::string text =
      first_screen("Finetuning my language model with gradient_checkpointing=True runs out of GPU memory");
  expect_none_of(text, {"gradient_checkpointing_enable"});
}

TEST(Respelling, KohyasScriptsHaveOptionsOfTheirOwn) {
  const std::string full = std::string(
      "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 8.00 GiB total "
      "capacity; 7.00 GiB already allocated; 0 bytes free)\n");
  const std::string whole = first_screen(full +
                                         "accelerate launch train_db.py --resolution=512,512 --xformers "
                                         "--gradient_checkpointing --train_batch_size=\"1\"");
  expect_on(whole, "--optimizer_type AdamW8bit");
  expect_on(whole, "train_network.py --network_module networks.lora");
  expect_none_of(whole, {"--network_train_unet_only", "--blocks_to_swap", "--fused_backward_pass", "needs peft"});
  const std::string adapters =
      first_screen(full + "sdxl_train_network.py --network_module networks.lora --gradient_checkpointing --sdpa");
  expect_none_of(adapters, {"--blocks_to_swap", "--fused_backward_pass", "--stop_text_encoder_training"});
  const std::string sdxl = first_screen(full + "sdxl_train.py --gradient_checkpointing --sdpa");
  expect_on(sdxl, "--fused_backward_pass");
  expect_none_of(sdxl, {"--network_train_unet_only", "--blocks_to_swap"});
}

TEST(Respelling, OllamaAndYoloByTheirOwnWords) {
  const std::string ollama = first_screen("ollama run some:70b\nError: cudaMalloc failed: out of memory. RTX 4090");
  expect_on(ollama, "PARAMETER num_gpu");
  expect_none_of(ollama, {"device_map", "-ngl", "--cpu-offload-gb"});
  expect_none_of(first_screen("YOLOv8 training out of memory with batch=1 imgsz=640 on a 4GB GPU"), {"half of batch="});
}

TEST(Respelling, StyleTransferInLuaAndElsewhere) {
  expect_none_of(first_screen("Building the style transfer model..\nTHCudaCheck FAIL error=2 : out of memory"),
                 {"-image_size", "-gpu -1", "-backend"});
  expect_none_of(first_screen("th neural_style.lua -backend clnn\nMemory object allocation failure, out of memory"),
                 {"-backend cudnn"});
}

TEST(Respelling, NerfstudioIsNotTheFirstScriptOfGaussians) {
  const std::string text =
      first_screen("ns-train splatfacto --data x\ntorch.cuda.OutOfMemoryError: CUDA out of memory.");
  expect_on(text, "--pipeline.model.");
  expect_none_of(text, {"--densify_grad_threshold", "--data_device"});
}

TEST(Respelling, WhatTheInputsAre) {
  expect_on(first_screen("Segmentation of lidar scenes: CUDA out of memory, 800k points of a point cloud"),
            "fewer points");
  const std::string images = first_screen("My resnet on 4k images runs out of GPU memory");
  expect_on(images, "smaller inputs");
  expect_none_of(images, {"shorter texts"});
  expect_none_of(first_screen("fine-tuning the model: CUDA out of memory in the validation"), {"max_seq_length"});
}

TEST(Respelling, FewerOfManyWorkers) {
  const std::string text = first_screen(
      "RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus error. My loader has num_workers = 32 and "
      "prefetch_factor=8");
  expect_on(text, "num_workers=8, prefetch_factor=2");
}

TEST(Respelling, PartsOfWordsAreNoPrograms) {
  const std::string server = first_screen("vllm: does the api endpoint support it? CUDA out of memory at the start");
  expect_on(server, "--gpu-memory-utilization");
  expect_none_of(first_screen("exitcode: -9\n{\"zero_optimization\": {\"stage\": 2, \"overlap_comm\": true}}"),
                 {"OpenRLHF"});
}

TEST(Respelling, CycleganHasCrops) {
  expect_on(first_screen("CycleGAN with fineSize 256 on my own images: CUDA out of memory"), "--crop_size");
}

}  // namespace
}  // namespace headroom::doctor
