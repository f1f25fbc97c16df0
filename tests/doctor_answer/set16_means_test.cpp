// Results that are joined at the end, saves that merge, sizes that no job asks for, releases, and programs with options
// of their own. Sentences of our own.
#include "first_screen.h"

namespace headroom::doctor {
namespace {

TEST(ResultsAndReleases, PredictionsThatKerasJoins) {
  const std::string text = first_screen(
      "I call predict() of my Keras model on 9000 volumes. It goes through all batches, then it ends with "
      "ResourceExhaustedError at the end, where it concatenates them on the GPU.");
  expect_on(text, "OUT OF MEMORY tensorflow");
  expect_on(text, "1 one batch at a time, each result to the host");
  expect_none_of(text, {"NO OUT-OF-MEMORY", "gradient"});
}

TEST(ResultsAndReleases, ScoresOfAWholeSet) {
  const std::string text = first_screen(
      "Traceback (most recent call last):\n  File \"main.py\", line 70, in validate\n    m = "
      "meter.compute_score(all_p, "
      "all_y)\n  File \"meter.py\", line 20, in compute_score\n    table[~seen] -= 9\nRuntimeError: CUDA out of "
      "memory. "
      "Tried to allocate 5.00 GiB (GPU 0; 15.90 GiB total capacity; 9.00 GiB already allocated; 3.00 GiB free; 9.10 "
      "GiB "
      "reserved in total by PyTorch)");
  expect_on(text, "1 predictions and labels to the host");
  expect_none_of(text, {"smaller inputs", "eval_batch"});
}

TEST(ResultsAndReleases, TheHarnessHasABatchOfItsOwn) {
  const std::string text = first_screen(
      "lm_eval --model hf --tasks piqa --batch_size auto on 4 GPUs: CUDA out of memory when the results are gathered");
  expect_on(text, "1 --batch_size 4");
  expect_none_of(text, {"gradient_checkpointing", "DataLoader"});
}

TEST(ResultsAndReleases, ASaveThatMerges) {
  const std::string text = first_screen(
      "Training with unsloth is through on my 12 GB card, then CUDA error: out of memory in "
      "model.push_to_hub_gguf(name, tokenizer). I want the file for ollama.");
  expect_on(text, "1 maximum_memory_usage=0.5");
  expect_none_of(text, {"num_ctx", "parallel request", "save_only_model", "bitsandbytes"});
}

TEST(ResultsAndReleases, ASizeThatNoJobAsksFor) {
  const std::string text = first_screen(
      "  File \"/x/splat/__init__.py\", line 30, in forward\n    out = _C.rasterize_points(*a)\n"
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 17179869184.00 GiB. GPU 0 has a total "
      "capacity "
      "of 23.69 GiB of which 18.00 GiB is free.");
  expect_on(text, "no job asks for that much");
  expect_on(text, "1 the extension built again");
  expect_none_of(text, {"smaller photographs", "batch_size", "crop"});
  const std::string onnx = first_screen(
      "onnxruntime::BFCArena::AllocateRawInternal Failed to allocate memory for requested buffer of size "
      "4611686018427387904");
  expect_on(onnx, "1 another release of the program");
  expect_none_of(onnx, {"torch", "batch"});
}

TEST(ResultsAndReleases, AnUpgradeThatBroughtIt) {
  const char* post =
      "My detector trained well. After updating the toolbox it ends with CUDA out of memory at the start.";
  expect_on(first_screen(post), "a newer one in which");
  const std::string title =
      first_screen("Memory of host explodes with version >= 3\nthe process is killed, 64 GB of RAM");
  expect_on(title, "a newer one in which");
  expect_none_of(first_screen("CUDA out of memory in training. It went away after updating: solved."),
                 {"a newer one in which"});
  expect_none_of(first_screen("After upgrading to Windows 11 my training ends with CUDA out of memory."),
                 {"a newer one in which"});
}

TEST(ResultsAndReleases, OldLibrariesBesideWholeEpochs) {
  const char* epochs = "My training is killed at the 6th epoch, the machine has 64 GB of RAM. ";
  expect_on(first_screen(std::string(epochs) + "PyTorch with CUDA 10.1 and cuDNN 7.6.5"), "old builds leaked");
  expect_none_of(first_screen(epochs), {"old builds leaked"});
}

TEST(ResultsAndReleases, ASmallModelShouldFit) {
  const std::string text = first_screen(
      "SFTTrainer with LoRA on a 1B model in 4-bit. With batch size 1 I get\ntorch.OutOfMemoryError: CUDA out of "
      "memory. "
      "Tried to allocate 200.00 MiB. GPU 0 has a total capacity of 7.80 GiB of which 90.00 MiB is free. Of the "
      "allocated "
      "memory 7.20 GiB is allocated by PyTorch, and 60.00 MiB is reserved by PyTorch but unallocated.\nWith gradient "
      "checkpointing I get the error: element 0 of tensors does not require grad");
  expect_on(text, "a new environment with current transformers");
  expect_on(text, "enable_input_require_grads");
}

TEST(ResultsAndReleases, FairseqFillsBatchesWithTokens) {
  const std::string text =
      first_screen("fairseq-train of a translator: CUDA out of memory with --max-tokens 2048 on 11 GB");
  expect_on(text, "--memory-efficient-fp16");
  expect_on(text, "--update-freq");
  expect_none_of(text, {"gradient_checkpointing_enable", "batch_size", "max_seq_length"});
  expect_none_of(first_screen("RVC takes features of hubert by fairseq: CUDA out of memory"), {"--max-tokens"});
}

TEST(ResultsAndReleases, AnOptimizerThatIsMade) {
  const std::string post =
      "A Megatron model of 12B with DeepSpeed on 8 GPUs ends in initialize: creating fp16 ZeRO stage 1 optimizer, "
      "then ";
  const std::string host = first_screen(post + "exits with return code = -9");
  expect_on(host, "1 --tensor-model-parallel-size 2");
  expect_none_of(host, {"DataLoader", "low_cpu_mem_usage", "batch_size"});
  expect_on(first_screen(post + "CUDA out of memory"), "1 --tensor-model-parallel-size 2");
}

TEST(ResultsAndReleases, AnAlgorithmThatStoresItsObservations) {
  const std::string text = first_screen(
      "MemoryError: Unable to allocate 90.0 GiB for an array with shape (100000, 64, 3750) and data type float32\nI "
      "train "
      "DQN on an environment of my own, its observation is an image.");
  expect_on(text, "1 a smaller replay memory");
  expect_on(first_screen("SAC on a gym task of mine: RAM grows until the process is killed"),
            "1 a smaller replay memory");
}

TEST(ResultsAndReleases, AProcessorAlone) {
  const std::string text = first_screen("I use CPU for the training of a detector. After a while: Killed.");
  expect_on(text, "the program computes on the CPU");
  expect_none_of(first_screen("I use CPU offload in the training: CUDA out of memory"), {"computes on the CPU"});
}

TEST(ResultsAndReleases, NodesOfComfyUi) {
  const std::string decode = first_screen(
      "A video workflow in ComfyUI: sampling is done, then out of memory at VAE Decode (tiled already). If I queue it "
      "again, it works.");
  expect_on(decode, "UnloadAllModels");
  expect_none_of(decode, {"pipe.", "in PyTorch:"});
  const std::string weights = first_screen(
      "torch.OutOfMemoryError: Allocation on device\nGot an OOM, unloading all loaded models.\nthe fp8 file of "
      "flux1-dev on "
      "16 GB");
  expect_on(weights, "a smaller file: GGUF");
  expect_on(weights, "ComfyUI, its nodes and its PyTorch updated");
  expect_none_of(weights, {"pipe.", "fp8, NF4"});
}

TEST(ResultsAndReleases, WhatAModelNeedsToBeQuantised) {
  const std::string text =
      first_screen("How much memory is needed to quantize a 120B model?\n\nOn one H100 80GB it is out of memory.");
  expect_on(text, "cache_examples_on_gpu=False");
  expect_none_of(text, {"in training", "load_in_4bit"});
}

TEST(ResultsAndReleases, MoreWordsForGrowth) {
  for (const char* grows : {"the GPU memory is increasing with iterations", "memory usage is progressively increasing"})
    expect_on(first_screen(std::string("Training of my network: ") + grows + ", then CUDA out of memory."),
              "by the post memory grows");
}

TEST(ResultsAndReleases, AFoldHasChunksAndNoImages) {
  const std::string text = first_screen(
      "python inference.py target.fasta\nRuntimeError: CUDA out of memory. Tried to allocate 60.00 GiB (GPU 0; 39.59 "
      "GiB "
      "total capacity; 9.00 GiB already allocated; 20.00 GiB free; 12.00 GiB reserved in total by PyTorch)");
  expect_on(text, "chunk_size 4");
  expect_none_of(text, {"image", "XLA_PYTHON"});
  expect_none_of(first_screen("A BERT is trained on the sequences of all.fasta: CUDA out of memory"), {"chunk_size"});
}

TEST(ResultsAndReleases, SoundThatIsWrittenDown) {
  const std::string text = first_screen("转写两小时的录音时显存溢出，切成十分钟一段还是溢出");
  expect_on(text, "1 a smaller model: large > medium");
  expect_none_of(text, {"accumulation", "images"});
}

TEST(ResultsAndReleases, ALargeRequestJustMissed) {
  expect_on(first_screen("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
                         "capacity of 23.60 GiB of which 1.90 GiB is free. Including non-PyTorch memory, this process "
                         "has 21.60 GiB memory in use."),
            "expandable_segments:True");
}

TEST(ResultsAndReleases, ATitleIsNoMessageOfItsOwn) {
  const std::string text = first_screen(
      "CUDA out of memory issue with my trainer\n\nIt ends so:\nRuntimeError: CUDA out of memory. Tried to allocate "
      "1.50 "
      "GiB (GPU 0; 10.76 GiB total capacity; 8.00 GiB already allocated; 900.00 MiB free; 9.00 GiB reserved in total "
      "by "
      "PyTorch)");
  expect_none_of(text, {"different messages", "2 times"});
}

TEST(ResultsAndReleases, ACommandInMarksAndADeviceInWords) {
  const std::string text = first_screen(
      "Full tuning ends out of memory, I have one A100 80GB.\n`CUDA_VISIBLE_DEVICES=0 python src/train_bash.py \\\n    "
      "--stage sft \\\n    --model_name_or_path meta-llama/Llama-2-7b-hf \\\n    --do_train \\\n    --finetuning_type "
      "full "
      "\\\n    --output_dir out \\\n    --per_device_train_batch_size 4 \\\n    --fp16`\nWhat can I do?");
  expect_on(text, "of 79.");
  expect_on(text, "offload");
  expect_none_of(text, {"FITS  yes", "cannot tell from the message alone"});
}

TEST(ResultsAndReleases, ARecipeIsAFile) {
  const std::string text = first_screen(
      "Fine-tuning of a 7B model on 8 H100 by the recipe sft-7b-shard2.toml of the repository ends with CUDA out of "
      "memory");
  expect_on(text, "1 a smaller batch in the recipe");
  expect_on(text, "activation checkpointing in the recipe");
  expect_none_of(text, {"gradient_checkpointing_enable", "max_seq_length", "DataLoader"});
}

TEST(ResultsAndReleases, AnInstalledProgramHasOptions) {
  const std::string text = first_screen(
      "```\nketchup train -f pages/*.xml\n```\nRuntimeError: DataLoader worker (pid(s) 77) exited unexpectedly, and "
      "the machine's 32 GB of RAM are full");
  expect_on(text, "by the program's own option (--workers 0");
  expect_none_of(text, {"DataLoader(", "low_cpu_mem_usage"});
}

}  // namespace
}  // namespace headroom::doctor
