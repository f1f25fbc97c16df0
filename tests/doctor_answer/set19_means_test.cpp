// Memory that rises by itself, what ran before, questions without a failure, releases, frozen parts, videos and corpora
// in host memory, pyannote, ggml's context, and ranks ended by signal 7. Posts of our own.
#include "first_screen.h"

namespace headroom::doctor {
namespace {

TEST(RisesByItself, OnADevice) {
  for (const char* post :
       {"As the run proceeds, the GPU memory that it wants increased, at last it is out of memory",
        "CUDA out of memory in my loop. GPU memory is growing during training, first 2 GB, then 6 GB",
        "显存在训练中每个 epoch 都会增加，最后爆显存"})
    expect_on(first_screen(post), "loss.item()");
}

TEST(RisesByItself, NotByASetting) {
  for (const char* post : {"The GPU memory increases when I increase the batch size, in each epoch. CUDA out of memory",
                           "If I set larger images the memory increases at each step: CUDA out of memory",
                           "如果增加 batch，每个 step 显存都会增加，显存不足"})
    expect_none_of(first_screen(post), {"1 total += loss.item()"});
}

TEST(RisesByItself, ALeakThatIsDeniedIsNone) {
  expect_none_of(first_screen("CUDA out of memory in my training. There is no memory leak in the validation."),
                 {"what is kept of every batch until its end"});
}

TEST(RisesByItself, WhatIsNotGivenBackByAProgramThatRunsOn) {
  const std::string text = first_screen("Over many pages the VRAM is not released, at page 300 it is out of memory");
  expect_on(text, "loss.item()");
  expect_none_of(text, {"kill -9"});
  expect_on(first_screen("After I stop the program its GPU memory is not released, then CUDA out of memory"),
            "kill -9");
}

TEST(RanBefore, AsksWhatElseHoldsTheDevice) {
  for (const char* post :
       {"CUDA out of memory since Monday. The same command used to work on this card.",
        "I cannot generate anything anymore, CUDA out of memory at once", "之前可以训练，今天 CUDA out of memory"})
    expect_on(first_screen(post), "1 nvidia-smi");
  expect_none_of(first_screen("Did this work before? CUDA out of memory in my training."), {"1 nvidia-smi: what else"});
}

TEST(RanBefore, OnTheHost) {
  expect_on(first_screen("Killed while it transcribes, 16 GB of RAM. It worked for months with the same files."),
            "other programs closed");
}

TEST(Releases, AreNamedByWordsOfAnUpdate) {
  for (const char* post : {"A recent update makes my workflow run into CUDA out of memory",
                           "CUDA out of memory, caused by the transformers version that I installed",
                           "Only versions up to 0.9 do not have this: CUDA out of memory after some steps"})
    expect_on(first_screen(post), "the release before");
}

TEST(Questions, AreAnsweredWithoutAFailure) {
  const std::string host =
      first_screen("High RAM use when I switch models\n\nThe RAM is full for a while. How to help?");
  expect_on(host, "host");
  expect_on(first_screen("Resuming takes up memory of GPU 0\n\nWhy does my first GPU need more memory when I load the "
                         "checkpoint? Is there a way around?"),
            "map_location");
  expect_on(first_screen("epoch 1 loss 2.3 memory: 3211 MiB\nepoch 2 loss 2.2 memory: 3211 MiB\n"),
            "NO OUT-OF-MEMORY MESSAGE FOUND");
}

TEST(Questions, RunsInOneProcessLeaveTheirGraphs) {
  expect_on(first_screen("It takes more and more RAM with each experiment in my script, how can I stop that?"),
            "clear_session");
}

TEST(FrozenParts, ThatTrainTooAreFrozenAgain) {
  for (const char* post : {"After I unfreeze the backbone in my training script: CUDA out of memory on a 12 GB card",
                           "让 BERT 也参与训练就显存溢出，12G 显卡"})
    expect_on(first_screen(post), "1 the pretrained part frozen again");
}

TEST(Moves, FailBeforeAnyInput) {
  expect_on(first_screen("CUDA out of memory already in the line\n\n`model.to(device)`\n\nwith 24 GB and no input yet"),
            "1 nvidia-smi before it starts");
}

TEST(HostMemory, OfAVideo) {
  const std::string text = first_screen("The demo is Killed on my own video of one minute, 32 GB of RAM");
  expect_on(text, "1 frames one after another");
  expect_on(text, "a shorter clip");
  expect_none_of(text, {"1 DataLoader"});
}

TEST(HostMemory, OfATokenizersCorpus) {
  expect_on(first_screen("I train a tokenizer on 80 GB of text and it takes all 128 GB of RAM, then it is killed"),
            "1 a sample of the text is enough");
}

TEST(HostMemory, OfGgmlsContext) {
  expect_on(first_screen("GGML_ASSERT: ggml.c:4411: ctx->mem_buffer != NULL\nAborted\nReal memory 1.9 GiB total"),
            "1 more host memory (RAM)");
}

TEST(HostMemory, IsSharedWhereARankHadABusError) {
  const std::string text = first_screen(
      "[INFO] [launch.py:315:sigkill_handler] Killing subprocess 3966\n[ERROR] [launch.py:321] ['python', 'main.py'] "
      "exits with return code = -7\n");
  expect_on(text, "/dev/shm");
  expect_none_of(text, {"1 more host memory"});
}

TEST(Speakers, HaveNoDiffusion) {
  const std::string text = first_screen(
      "from pyannote.audio import Pipeline\npipeline = Pipeline.from_pretrained(\"pyannote/speaker-diarization\")\n"
      "dz = pipeline(\"talk.wav\")\nRuntimeError: CUDA out of memory\n");
  expect_on(text, "embedding_batch_size");
  expect_none_of(text, {"vae"});
}

TEST(Servers, ThatUseOneOfSeveralDevices) {
  expect_on(first_screen("vllm 0.5.5 demo on 8*V100 32G: CUDA out of memory"), "1 --tensor-parallel-size");
}

TEST(Servers, WithScoresOfAllPatches) {
  const std::string text = first_screen(
      "vllm serve kimi-vl --limit-mm-per-prompt image=64\ntorch.OutOfMemoryError: CUDA out of memory. Tried to "
      "allocate "
      "1029.51 GiB. GPU 0 has a total capacity of 79.35 GiB of which 19.23 GiB is free.");
  expect_on(text, "1 pip install flash-attn");
}

TEST(Trainers, OfDiffusionTransformersSwapBlocks) {
  expect_on(first_screen("Training a LoRA of HiDream by diffusion-pipe on 3 x 4090: CUDA out of memory"),
            "blocks_to_swap");
}

}  // namespace
}  // namespace headroom::doctor
