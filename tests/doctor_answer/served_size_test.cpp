// Servers whose weights are larger than one device: more devices, not a smaller share. Sentences of our own.
#include "first_screen.h"

namespace headroom::doctor {
namespace {

TEST(ServedSize, OneOfSeveralDevicesDoesNotHoldTheWeights) {
  const std::string vllm = first_screen(
      "vllm serve some/Model-70B-Instruct runs out of memory (OOM). The node has 4 A100-80GB, only the first is used. "
      "I "
      "cannot set tensor_parallel_size=4 in code.");
  expect_on(vllm, "1 --tensor-parallel-size 4");
  expect_on(vllm, "a version in 4 or 8 bits");
  expect_none_of(vllm, {"--gpu-memory-utilization", "--enforce-eager", "--max-num-seqs"});
  const std::string sglang = first_screen(
      "python -m sglang.launch_server --model-path some/Model-34B\nCUDA out of memory on my 8 RTX 4090 machine");
  expect_on(sglang, "1 --tp 8");
}

TEST(ServedSize, AShareIsNotOfferedWhereTheWeightsExceedTheDevice) {
  const std::string text = first_screen(
      "vllm serve some/Model-72B on 2x A100 80G: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 462.00 "
      "MiB. "
      "GPU 0 has a total capacity of 79.15 GiB of which 200.00 MiB is free.");
  expect_on(text, "1 --tensor-parallel-size 2");
  expect_none_of(text, {"--gpu-memory-utilization"});
}

TEST(ServedSize, SharedAlreadyOrSmallIsAnotherMatter) {
  for (const char* post : {"vllm serve some/Model-70B --tensor-parallel-size 4 gives CUDA out of memory on 4 A100-80GB",
                           "vllm serve some/Model-7B gives CUDA out of memory on 4 A100-80GB"})
    expect_none_of(first_screen(post), {"the server takes one device unless it is told more"});
}

TEST(ServedSize, ATitleThatADeviceCannotLoadItIsAboutMemory) {
  const std::string text = first_screen(
      "24GB card cannot load my model\n  File \"/usr/lib/python3/vllm/engine/llm_engine.py\", line 1, in "
      "_initialize_kv_caches\n    self.model_executor.determine_num_available_blocks())");
  expect_on(text, "OUT OF MEMORY");
  expect_on(text, "--gpu-memory-utilization");
}

}  // namespace
}  // namespace headroom::doctor
