// Host memory that grows over a training, and programs that compute on the CPU alone. Sentences of our own.
#include "first_screen.h"

namespace headroom::doctor {
namespace {

const std::vector<std::string_view>& of_the_device() {
  static const std::vector<std::string_view> kWords = {"nvidia-smi", "pytorch-cuda", "on the GPU",
                                                       "gradient_checkpointing"};
  return kWords;
}

TEST(HostGrowth, WhatIsKeptAndWhatWorkersCopyComeFirst) {
  for (const char* post :
       {"训练过程中内存一直在增长，最后被系统杀死", "System RAM keeps climbing while I train until it is killed",
        "The RAM usage steadily increases with every epoch, then the process is killed",
        "学習中にメインメモリが増え続け、最後に強制終了されます"}) {
    const std::string text = first_screen(post);
    expect_on(text, "does it still grow?");
    expect_on(text, "kept from step to step");
    expect_none_of(text, of_the_device());
    expect_none_of(text, {"swap for a short peak"});
  }
}

TEST(HostGrowth, TheValidationHasWorkersOfItsOwn) {
  const std::string text = first_screen(
      "The CPU memory increases during each epoch, and jumps after the first validation. 8 workers per rank.");
  expect_on(text, "MEMORY GROWS");
  expect_on(text, "the validation's loader has workers of its own");
  expect_on(text, "persistent_workers=False");
  expect_none_of(text, of_the_device());
}

TEST(HostGrowth, AfterWholeEpochsSomethingIsKept) {
  const std::string text = first_screen("My training runs out of system memory after 5 epochs. Why?");
  expect_on(text, "whole epochs went well");
  expect_on(text, "num_workers=0");
}

TEST(HostGrowth, WithoutADeviceItIsTheHosts) {
  const std::string trainer = first_screen(
      "Out of memory in the evaluation of my Trainer\n- PyTorch version (GPU?): 2.1.0 (False)\n"
      "args = TrainingArguments(output_dir='out', per_device_eval_batch_size=32)");
  expect_on(trainer, "OUT OF MEMORY host");
  expect_on(trainer, "preprocess_logits_for_metrics");
  expect_none_of(trainer, of_the_device());
  expect_none_of(trainer, {"eval_accumulation_steps"});
  const std::string script = first_screen("My training on the CPU runs out of memory with batch size 64");
  expect_on(script, "the program computes on the CPU");
  expect_none_of(script, of_the_device());
  const std::string device = first_screen("Using GPU in script?: YES\nOut of memory in the evaluation of my Trainer");
  expect_none_of(device, {"OUT OF MEMORY host"});
}

TEST(HostGrowth, OptionsOfAPrintedCommandAreNoStage) {
  const std::string text = first_screen(
      "[INFO] [launch.py:318:sigkill_handler] Killing subprocess 11\n[ERROR] ['python', '-u', 'tune.py', "
      "'--validation_split', '0', '--per_device_train_batch_size', '1', '--x', 'y'] exits with return code = -9");
  expect_none_of(text, {"evaluation set"});
}

TEST(HostGrowth, TheFirstValidationStartsWorkers) {
  const std::string text = first_screen(
      "Training is fine, but when the validation starts the RAM is full and the kernel kills it. Both loaders have "
      "num_workers=4.");
  expect_on(text, "the validation's loader has workers of its own");
}

TEST(HostGrowth, OtherFrameworksHaveOtherLoops) {
  const std::string text =
      first_screen("Host memory keeps growing while I call model.predict of Keras in a loop, then it is killed");
  expect_on(text, "predict_on_batch");
  expect_none_of(text, {"DataLoader", ".item()"});
}

TEST(HostGrowth, WhatIsDeniedIsTheOther) {
  expect_on(first_screen("训练几个epoch后内存爆了（不是显存），num_workers=2"), "OUT OF MEMORY host");
}

TEST(HostGrowth, OneLargeTensorIsAnInput) {
  const std::string text = first_screen(
      "RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you "
      "tried "
      "to allocate 12884901888 bytes. Error code 12 (Cannot allocate memory)\nI run a unet on large images");
  expect_on(text, "1 smaller inputs");
}

}  // namespace
}  // namespace headroom::doctor
