// Whose code a frame is, what an allocation below a stack is for, and to which code line it is attributed.
#include <gtest/gtest.h>

#include "doctor/snapshot/clean_text.h"
#include "doctor/snapshot/frame_origin.h"
#include "doctor/snapshot/memory_class.h"

namespace headroom::doctor {
namespace {

const std::string kPackages = "/home/user/env/lib/python3.11/site-packages/";

StackFrame frame(const std::string& file, const std::string& function, int64_t line = 1) {
  StackFrame out;
  out.file = file;
  out.function = function;
  out.line = line;
  return out;
}

// Innermost first.
MemoryClass class_of(const std::vector<StackFrame>& frames) {
  StackTable table;
  table.frames = frames;
  table.stacks.emplace_back();
  for (uint32_t i = 0; i < frames.size(); ++i) table.stacks[1].push_back(i);
  return classify_stacks(table)[1];
}

std::string place_of(const std::vector<StackFrame>& frames) {
  StackTable table;
  table.frames = frames;
  table.stacks.emplace_back();
  for (uint32_t i = 0; i < frames.size(); ++i) table.stacks[1].push_back(i);
  return places_of(table)[1];
}

const StackFrame kModule = frame(kPackages + "torch/nn/modules/module.py", "_call_impl");
const StackFrame kLlama = frame(kPackages + "transformers/models/llama/modeling_llama.py", "forward", 176);
const StackFrame kTrain = frame("/home/user/job/train.py", "main", 20);

TEST(FrameOrigin, TellsWhoseCodeItIs) {
  EXPECT_EQ(frame_origin(kModule), FrameOrigin::torch);
  EXPECT_EQ(frame_origin(kLlama), FrameOrigin::program);
  EXPECT_EQ(frame_origin(kTrain), FrameOrigin::program);
  EXPECT_EQ(frame_origin(frame("/home/user/src/pytorch/torch/optim/adam.py", "step")), FrameOrigin::torch);
  EXPECT_EQ(frame_origin(frame("C:\\env\\Lib\\site-packages\\torch\\_ops.py", "__call__")), FrameOrigin::torch);
  EXPECT_EQ(frame_origin(frame("/home/user/torch/my_model.py", "forward")), FrameOrigin::program);
  EXPECT_EQ(frame_origin(frame("/usr/lib/python3.11/contextlib.py", "inner")), FrameOrigin::runtime);
  EXPECT_EQ(frame_origin(frame("<frozen runpy>", "_run_code")), FrameOrigin::runtime);
  EXPECT_EQ(frame_origin(frame("<ipython-input-3-ab>", "<module>")), FrameOrigin::program);
  EXPECT_EQ(frame_origin(frame("??", "at::native::empty_cuda()")), FrameOrigin::native);
  EXPECT_EQ(frame_origin(frame("/build/c10/cuda/CUDACachingAllocator.cpp", "malloc")), FrameOrigin::native);
}

TEST(FrameOrigin, CountsAllocationsUnderTheProgramsInnermostLine) {
  EXPECT_EQ(place_of({kModule, kLlama, kModule, kTrain}), "transformers/models/llama/modeling_llama.py:176 forward");
  EXPECT_EQ(place_of({kModule}), "torch/nn/modules/module.py:1 _call_impl");
  EXPECT_EQ(place_of({frame("/a/b/c/d/train.py", "f", 3)}), "d/train.py:3 f");
  EXPECT_EQ(place_of({frame("??", "c10::cuda::CUDACachingAllocator::malloc()"),
                      frame("??", "void torch::autograd::generated::AddmmBackward0::apply(x)")}),
            "AddmmBackward0 (C++)");
  EXPECT_EQ(place_of({frame("??", "c10::StorageImpl::StorageImpl()"), frame("x.cpp", "at::zeros(int)")}),
            "at::zeros (C++)");
  EXPECT_EQ(place_of({frame("??", "??")}), "C++ code");
}

struct Row {
  MemoryClass kind;
  std::vector<StackFrame> frames;
};

TEST(MemoryClasses, TheInnermostTellingFrameDecides) {
  const std::string torch = kPackages + "torch/", hf = kPackages + "transformers/";
  const StackFrame adam_step = frame(torch + "optim/adam.py", "step");
  const StackFrame linear = frame(torch + "nn/functional.py", "linear");
  const std::vector<Row> rows{
      {MemoryClass::activations, {linear, kModule, kLlama, frame(hf + "trainer.py", "compute_loss")}},
      {MemoryClass::loss,
       {frame(torch + "nn/functional.py", "cross_entropy"), frame(hf + "loss/loss_utils.py", "ForCausalLMLoss"),
        kLlama}},
      {MemoryClass::loss, {frame(torch + "nn/modules/loss.py", "forward"), kModule, kTrain}},
      {MemoryClass::optimizer_state,
       {frame(torch + "_tensor.py", "x"), frame(torch + "optim/adamw.py", "_init_group"), adam_step}},
      {MemoryClass::optimizer_step, {frame(torch + "optim/adam.py", "_multi_tensor_adam"), adam_step, kTrain}},
      {MemoryClass::optimizer_state,
       {frame(kPackages + "bitsandbytes/optim/optimizer.py", "get_state_buffer"), kTrain}},
      {MemoryClass::gradients, {frame(torch + "autograd/graph.py", "_engine_run_backward"), kTrain}},
      {MemoryClass::gradients,
       {frame("/home/user/job/ops.py", "backward"), frame(torch + "autograd/function.py", "apply")}},
      {MemoryClass::gradients, {frame("??", "at::empty"), frame("??", "torch::autograd::Engine::thread_main(x)")}},
      {MemoryClass::recomputed, {linear, kModule, kLlama, frame(torch + "utils/checkpoint.py", "unpack_hook")}},
      {MemoryClass::recomputed, {linear, kLlama, frame(torch + "utils/checkpoint.py", "backward"), kTrain}},
      {MemoryClass::activations, {linear, kLlama, frame(torch + "utils/checkpoint.py", "checkpoint"), kTrain}},
      {MemoryClass::weights,
       {frame(torch + "nn/modules/module.py", "convert"), frame(torch + "nn/modules/module.py", "_apply"), kTrain}},
      {MemoryClass::weights, {frame(torch + "nn/modules/linear.py", "__init__"), kTrain}},
      {MemoryClass::weights,
       {frame(kPackages + "safetensors/torch.py", "load_file"), frame(hf + "modeling_utils.py", "from_pretrained")}},
      {MemoryClass::sharding,
       {frame(torch + "distributed/fsdp/_flat_param.py", "_alloc_padded_unsharded_flat_param"), kModule, kLlama}},
      {MemoryClass::sharding, {frame(torch + "nn/parallel/distributed.py", "_ddp_init_helper"), kTrain}},
      {MemoryClass::optimizer_step, {frame(torch + "distributed/tensor/_dispatch.py", "dispatch"), adam_step}},
      {MemoryClass::inputs, {frame(kPackages + "accelerate/utils/operations.py", "send_to_device"), kTrain}},
      {MemoryClass::kv_cache, {frame(hf + "cache_utils.py", "update"), kLlama}},
      {MemoryClass::workspaces, {frame("??", "at::cuda::getCurrentCUDABlasHandle()"), linear, kLlama}},
      {MemoryClass::other, {kTrain}},
  };
  for (size_t i = 0; i < rows.size(); ++i)
    EXPECT_STREQ(memory_class_name(class_of(rows[i].frames)), memory_class_name(rows[i].kind)) << "row " << i;
}

TEST(MemoryClasses, NoFramesIsTheBackwardThreadOnlyBesideAForwardPass) {
  StackTable table;
  table.frames = {kTrain, kLlama};
  table.stacks = {{}, {0}};
  EXPECT_EQ(classify_stacks(table)[0], MemoryClass::unknown);
  table.stacks.push_back({1});
  EXPECT_EQ(classify_stacks(table)[0], MemoryClass::gradients);
}

TEST(CleanText, LeavesOnlyWhatATerminalAndJsonCanBear) {
  EXPECT_EQ(clean_text("caf\xc3\xa9 \xe2\x96\x81"), "caf\xc3\xa9 \xe2\x96\x81");
  EXPECT_EQ(clean_text("\x1b[31mred\n"), "?[31mred?");
  EXPECT_EQ(clean_text("a\xff\xc3z\xe2\x96"), "a??z??");
  EXPECT_EQ(clean_text("\xc0\xaf\xed\xa0\x80\xf5\x80"), "???????");
  EXPECT_EQ(clean_text("\xc2\x9b"), "?");
  EXPECT_EQ(clean_text("ab\xc3\xa9", 3), "ab");
}

}  // namespace
}  // namespace headroom::doctor
