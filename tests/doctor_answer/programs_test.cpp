// Advice is in terms of the program that the post is about. The posts are in our own words.
#include <gtest/gtest.h>

#include <sstream>

#include "doctor/answer/answer.h"
#include "doctor/output/screen.h"

namespace headroom::doctor {
namespace {

Report answered(const std::string& text, Request request = {}) {
  request.inputs = {"-"};
  std::istringstream stream(text + "\n");
  return answer(request, stream).report;
}

std::string screen_of(const std::string& text, const Request& request = {}) { return screen(answered(text, request)); }

bool holds(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

void expect_no_training(const std::string& text) {
  for (const std::string_view word : {"optimizer.step", "DataLoader", "fully_shard", "accumulation"})
    EXPECT_FALSE(holds(text, word)) << word << "\n" << text;
}

void expect_no_training_code(const std::string& text) {
  for (const std::string_view word : {"optimizer.step", "DataLoader", "fully_shard"})
    EXPECT_FALSE(holds(text, word)) << word << "\n" << text;
}

TEST(Programs, ThatInferGetNoAdviceForATraining) {
  expect_no_training(screen_of(
      "Error occurred when executing SamplerCustomAdvanced:\n\nAllocation on device 0 would exceed allowed memory. "
      "(out of memory)\nCurrently allocated : 11.20 GiB\nRequested : 1.50 GiB\nDevice limit : 15.70 GiB\nFree "
      "(according to CUDA): 18.00 MiB\n"));
  expect_no_training(screen_of("xinference launch --model-name qwen-chat ends with CUDA out of memory"));
  expect_no_training(screen_of("python web_demo.py, then torch.cuda.OutOfMemoryError: CUDA out of memory."));
}

TEST(Programs, RoomBelowTheLimitIsExplained) {
  const std::string text = screen_of(
      "Error occurred when executing KSampler:\n\nAllocation on device 0 would exceed allowed memory. (out of "
      "memory)\nCurrently allocated : 10.00 GiB\nRequested : 1.00 GiB\nDevice limit : 15.70 GiB\nFree (according "
      "to CUDA): 18.00 MiB\n");
  EXPECT_TRUE(holds(text, "less than the device")) << text;
  EXPECT_TRUE(holds(text, "--lowvram")) << text;
}

TEST(Programs, OfPaddleGetNoCodeOfPyTorch) {
  for (const char* post : {"paddleocr 识别几百张图片，内存一直增长，不释放",
                           "PaddleOCR on a CPU: memory keeps growing with each "
                           "picture until it is out of memory",
                           "import paddle\n训练时显存不足 out of memory"}) {
    const std::string text = screen_of(post);
    for (const std::string_view word : {"torch", ".item()", "DataLoader(..., num_workers", "optimizer.step"})
      EXPECT_FALSE(holds(text, word)) << text;
  }
  EXPECT_TRUE(holds(screen_of("paddleocr 识别几百张图片，内存一直增长，不释放"), "enable_memory_optim"));
}

TEST(Programs, ABareStatusOfALibraryMayBeTensorFlows) {
  const std::string text = screen_of("my four lines of code end with CUBLAS_STATUS_ALLOC_FAILED on the GPU");
  EXPECT_TRUE(holds(text, "TF_FORCE_GPU_ALLOW_GROWTH")) << text;
}

TEST(Programs, AVoiceIsCutBeforeItIsConverted) {
  const std::string text = screen_of("歌声推理：音频太长时显存不足，切片没有停顿");
  EXPECT_TRUE(holds(text, "clip_seconds")) << text;
  const std::string gpt = screen_of("GPT-SoVITS 训练 SoVITS 模型时显存不足，batch size 是 4");
  EXPECT_FALSE(holds(gpt, "config.json")) << gpt;
  EXPECT_TRUE(holds(gpt, "batch size per GPU of 1")) << gpt;
}

TEST(Programs, SlotsOfOllamaMultiplyTheContext) {
  const std::string text = screen_of(
      "PARAMETER num_ctx 4096\nllama_new_context_with_model: n_ctx      = 16384\nggml_backend_cuda_buffer_type_alloc_"
      "buffer: allocating 4096.00 MiB on device 0: cudaMalloc failed: out of memory\nollama");
  EXPECT_TRUE(holds(text, "OLLAMA_NUM_PARALLEL=1")) << text;
  EXPECT_TRUE(holds(text, "num_ctx 2048")) << text;
}

TEST(Programs, ReservedMemoryToldInWordsGetsTheAllocator) {
  const std::string text = screen_of(
      "CUDA out of memory although nvidia-smi shows room; PyTorch keeps reserved memory that it does not use");
  EXPECT_TRUE(holds(text, "empty_cache")) << text;
  EXPECT_FALSE(holds(text, "says no more")) << text;
}

TEST(Programs, RecordingsAreNotCropped) {
  const std::string text = screen_of(
      "RuntimeError: CUDA out of memory. Tried to allocate 40.00 GiB (GPU 0; 23.70 GiB total capacity; 3.00 GiB "
      "already "
      "allocated; 19.00 GiB free; 3.50 GiB reserved in total by PyTorch)\npytorch-1.13, speech, max_duration 200");
  EXPECT_TRUE(holds(text, "max_duration")) << text;
  EXPECT_FALSE(holds(text, "crop")) << text;
  EXPECT_FALSE(holds(text, "scaled_dot_product_attention")) << text;
}

TEST(Programs, AnUpgradeIsTakenBack) {
  const std::string text =
      screen_of("CUDA out of memory after upgrading the server; before the upgrade the same model ran");
  EXPECT_TRUE(holds(text, "older version")) << text;
}

TEST(Programs, AModelOfOneImageSizeHasNoPixelsToSave) {
  const std::string text = screen_of("glm-4v-9b 推理时显存不足, 一张图");
  EXPECT_FALSE(holds(text, "max_pixels")) << text;
}

TEST(Programs, NothingIsLoadedWhereNoLoaderIs) {
  const std::string text = screen_of("my container exited with code 137 right after docker compose up");
  EXPECT_FALSE(holds(text, "DataLoader")) << text;
  EXPECT_TRUE(holds(screen_of("the training was Killed, num_workers=8, host RAM is full"), "num_workers"));
}

TEST(Programs, AQuestionOfNeedNamesNoOptimizer) {
  expect_no_training_code(screen_of("how much memory does the large model need?\n\ncuda out of memory 3060"));
}

// The closing line is only there if a memory size and a language model are known.
TEST(Programs, HeadroomsOwnCommandIsNotMadeUp) {
  EXPECT_FALSE(holds(screen_of("fine-tuning Llama 7B, CUDA out of memory"), "headroom plan"));
  Request sized;
  sized.gpu = "24GiB";
  EXPECT_TRUE(holds(screen_of("fine-tuning Llama 7B, CUDA out of memory", sized), "--memory 24GiB"));
  EXPECT_FALSE(holds(screen_of("training a U-Net on 3D volumes, CUDA out of memory", sized), "headroom plan"));
}

// What the log names is added to the job of --params.
TEST(Programs, DeepSpeedInTheLogIsNotIgnored) {
  Request request;
  request.gpu = "a40";
  request.gpus = 4;
  request.parameters = "11B";
  const Report report =
      answered("OOM when finetuning a T5 with deepspeed and fp16 on 4 GPUs, CUDA out of memory", request);
  ASSERT_TRUE(report.incident.job.has_value());
  EXPECT_TRUE(report.incident.job->parallel.deepspeed);
  EXPECT_EQ(report.incident.job->precision.autocast, "float16");
  const std::string text = screen(report);
  EXPECT_FALSE(holds(text, "fully_shard")) << text;
  EXPECT_FALSE(holds(text, "likely")) << text;
  EXPECT_TRUE(holds(text, "offload")) << text;
  const Report staged =
      answered("OOM when finetuning with deepspeed zero stage 3 and lora on 4 GPUs, CUDA out of memory", request);
  EXPECT_EQ(staged.incident.job->parallel.sharding, Sharding::zero3);
  EXPECT_TRUE(staged.incident.job->lora.has_value());
  const Report without = answered("OOM in full fine-tuning without LoRA, CUDA out of memory", request);
  EXPECT_FALSE(without.incident.job->lora.has_value());
}

}  // namespace
}  // namespace headroom::doctor
