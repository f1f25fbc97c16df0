// Sums and features that keep graphs, growth without end, bases in 16 bits on every device, vLLM inside other programs,
// states beyond every device, children ended by signal 9, and videos in pieces. Posts of our own.
#include "first_screen.h"

namespace headroom::doctor {
namespace {

const std::string kLost =
    "RuntimeError: CUDA out of memory. Tried to allocate 30.00 MiB (GPU 0; 10.76 GiB total capacity; 9.50 GiB already "
    "allocated; 4.00 MiB free; 9.80 GiB reserved in total by PyTorch)\n";

TEST(KeptGraphs, OfAnyMeasureThatIsSummed) {
  for (const char* line :
       {"    score_sum += score / len(loader)\n", "    total_nll = total_nll + nll / num_batches\n",
        "    running_psnr += psnr(clean, noisy)\n", "    sum_likelihood += model.log_likelihood(rows)\n"})
    expect_on(first_screen(line + kLost), "1 total += loss.item()");
}

TEST(KeptGraphs, NotOfNumbers) {
  for (const char* line :
       {"    score_sum += score.item() / len(loader)\n", "    total_nll += float(nll) / num_batches\n",
        "    loss += 0.1 * aux_loss\n", "    position += step / len(path)\n"})
    expect_none_of(first_screen(line + kLost), {"1 total +="});
}

TEST(KeptGraphs, OnTheHost) {
  const std::string text = first_screen(
      "    mean_loss += batch_loss / len(batches)\nMy notebook is soon out of RAM with this loop, it has no GPU.");
  expect_on(text, "1 total += value.item()");
  expect_none_of(text, {"1 DataLoader"});
  expect_on(
      first_screen("    mean_cost = mean_cost + cost_of_loss / len(batches)\nKilled\n64 GB of RAM after one epoch"),
      "1 total += value.item()");
}

TEST(KeptGraphs, GrowthWithoutEnd) {
  for (const char* post : {"GPU memory use climbs endlessly in my training loop and then it is out of memory",
                           "While I train, GPU RAM rises without limit, at last it is out of memory",
                           "显存无限增长，直到爆掉，训练代码如下"})
    expect_on(first_screen(post), "loss.item()");
  expect_none_of(first_screen("My training is out of memory at its first step. The loss rises without limit."),
                 {"1 total += loss.item()"});
}

TEST(Features, AreTakenWithoutGradients) {
  for (const char* post :
       {"Extracting embeddings of 2000 recordings by wav2vec2 on a 3060: CUDA out of memory",
        "I extract features of my pictures by a pretrained ResNet, one after the other, and get CUDA "
        "out of memory",
        "用预训练模型提取特征时显存不足"})
    expect_on(first_screen(post), "with torch.no_grad(): around the network");
  expect_none_of(first_screen("so-vits-svc: feature extraction by hubert is CUDA out of memory"),
                 {"around the network"});
}

TEST(Bases, InFewBitsWhereSixteenFillTheDevice) {
  Request request;
  request.gpu = "3090";
  request.gpus = 2;
  request.parameters = "14B";
  const std::string text = first_screen("lora 微调 14B 模型，两张 3090，显存不足", request);
  expect_on(text, "1 from_pretrained(..., quantization_config=BitsAndBytesConfig(load_in_4bit=True");
  expect_none_of(text, {"FITS yes"});
  expect_on(first_screen("LoRA finetuning of Qwen-14B on 2 x 3090 with LLaMA-Factory: CUDA out of memory"),
            "1 the base in 4 bits");
  expect_on(first_screen("用 lora 微调 7B 模型，3090，batch_size 1 也显存溢出"), "1 the base in 4 bits");
  expect_none_of(first_screen("LoRA finetuning of a 3B model on a 3090, batch size 16: CUDA out of memory"),
                 {"1 the base in 4 bits"});
  expect_none_of(first_screen("QLoRA finetuning of Qwen-14B on a 3090: CUDA out of memory"), {"1 the base in 4 bits"});
}

TEST(Engines, InsideAHarness) {
  const std::string text = first_screen(
      "lm_eval --model vllm --model_args pretrained=MODEL,max_model_len=2048 on mmlu: CUDA out of memory on 40 GB");
  expect_on(text, "1 a smaller share for vLLM");
  expect_on(text, "2 enforce_eager=True");
  expect_none_of(text, {"torch.no_grad"});
  expect_on(first_screen("opencompass with its vllm backend, a 7B model on 40 GB: CUDA out of memory"),
            "enforce_eager=True");
  expect_none_of(first_screen("lm_eval --model hf --batch_size auto: CUDA out of memory"), {"enforce_eager"});
}

TEST(Engines, HaveTheirOptionsInTheProgramsWords) {
  const std::string lost =
      "ValueError: The model's max seq len (16384) is larger than the maximum number of tokens that can be stored in "
      "KV "
      "cache (5200). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the "
      "engine.\n";
  expect_on(first_screen(lost + "This is lm_eval --model vllm with a 14B model."),
            "max_model_len=5200 in --model_args");
  expect_on(first_screen(lost + "This is swift infer with its vllm backend."), "--vllm_max_model_len 5200");
  expect_on(first_screen(lost + "This is LLaMA-Factory, infer_backend vllm."), "vllm_maxlen: 5200");
  expect_on(first_screen(lost + "This is vllm serve MODEL."), "--max-model-len 5200");
}

TEST(Engines, OfAChatOfATrainer) {
  Request request;
  request.gpus = 2;
  const std::string text = first_screen(
      "python src/cli_demo.py --model_name_or_path MODEL --template T --infer_backend vllm --vllm_maxlen 2048\n"
      "ValueError: The model's max seq len (2048) is larger than the maximum number of tokens that can be stored in KV "
      "cache (300). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the "
      "engine.",
      request);
  expect_on(text, "vllm_gpu_util");
  expect_none_of(text, {"per_device_train_batch_size", "gradient_checkpointing"});
}

TEST(States, BeyondEveryDevice) {
  Request request;
  request.gpu = "a100-80gb";
  request.gpus = 8;
  request.parameters = "30B";
  const std::string text = first_screen("Finetuning of a 30B LLaMA on 8 A100 runs out of memory", request);
  expect_on(text, "1 weights and states divided");
  expect_on(text, "2 weights and states on the host");
  const std::string second = first_screen("DeepSpeed zero2, all weights of a 13B LLaMA on 8 GPUs: CUDA out of memory");
  expect_on(second, "\"offload_optimizer\"");
  expect_on(first_screen("DeepSpeed zero1, all weights of a 7B Qwen on 4 GPUs, batch size 1: CUDA out of memory"),
            "\"offload_optimizer\"");
}

TEST(Children, EndedByTheirNegativeSignal) {
  for (const char* post :
       {"error code -9 when the text encoder is loaded", "The command returned non-zero exit status -9.",
        "the worker has finished with return code -9", "子进程退出码 -9"}) {
    const std::string text = first_screen(post);
    expect_on(text, "host memory (RAM)");
    expect_none_of(text, {"NO OUT-OF-MEMORY"});
  }
  for (const char* post : {"error code -92 when the file is read", "error code -11 of the driver"})
    expect_on(first_screen(post), "NO OUT-OF-MEMORY");
}

TEST(Children, UnderWsl) {
  expect_on(first_screen("The trainer stops with return code -9 in WSL, the machine has 32 GB"), "1 %UserProfile%");
}

TEST(Videos, GoThroughInPieces) {
  for (const char* post : {"Colorization of an old movie (mp4, ten minutes) is CUDA out of memory on 8 GB",
                           "Interpolation of frames of a 4K video: CUDA out of memory on a 2070",
                           "用它做视频修复推理，显存不足，视频有三百帧"})
    expect_on(first_screen(post), "1 fewer frames at once");
  expect_on(first_screen("Stable Video Diffusion, 25 frames of 1024x576 on a 3090: CUDA out of memory"),
            "decode_chunk_size=2");
  expect_none_of(first_screen("The demo of a detector is CUDA out of memory on my video card with 6 GB"),
                 {"1 fewer frames at once"});
  expect_none_of(first_screen("Training of a video classifier, batch size 8: CUDA out of memory"),
                 {"1 fewer frames at once"});
}

TEST(Rows, WithImagesAreLongByTheirPixels) {
  for (const char* post : {"SFTTrainer(model=model, data_collator=UnslothVisionDataCollator(model, tokenizer))\nThe "
                           "training is out of memory at step 30 on a T4",
                           "Finetuning of Llama-3.2-11B-Vision-Instruct with LoRA on 24 GB: CUDA out of memory",
                           "LLaMA-Factory sft of Qwen2-VL-7B with lora on a 4090: CUDA out of memory"})
    expect_on(first_screen(post), "1 smaller images");
}

TEST(Devices, ASmallOneAndTheSmallestBatch) {
  Request request;
  request.gpu = "8GiB";
  const std::string text =
      first_screen("CUDA out of memory with this code, batch_size 1 does not help either", request);
  expect_on(text, "2 a larger GPU");
  Request large;
  large.gpu = "a100-80gb";
  expect_none_of(first_screen("CUDA out of memory with this code, batch_size 1 does not help either", large),
                 {"2 a larger GPU"});
}

}  // namespace
}  // namespace headroom::doctor
