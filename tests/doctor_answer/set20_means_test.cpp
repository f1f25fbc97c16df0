// Frames of a video, growth that goes along with a loop, `free -h`, and Keras on the host. Posts of our own.
#include "first_screen.h"

namespace headroom::doctor {
namespace {

TEST(Frames, ComeBeforePixels) {
  const std::string text = first_screen(
      "CUDA out of memory with Qwen2.5-VL on a video of ten minutes, one A100.\n{\"type\": \"video\", \"video\": "
      "\"talk.mp4\", \"max_pixels\": 100352, \"fps\": 2.0}");
  expect_on(text, "1 fewer frames");
  expect_none_of(first_screen("CUDA out of memory with Qwen2.5-VL on a photograph, one A100"), {"fewer frames: "});
}

TEST(Growth, AlongWithALoop) {
  expect_on(first_screen("always CUDA out of memory, the GPU memory increases along with the loop in training"),
            "loss.item()");
  expect_none_of(first_screen("CUDA out of memory in training. The memory keeps going up and down."),
                 {"1 total += loss.item()"});
}

TEST(Host, IsMeantByItsTool) {
  const std::string text =
      first_screen("OOM error when vLLM loads a file of 200 GB\n\nI looked at `free -h` and there was room enough.");
  expect_on(text, "host memory");
  expect_none_of(text, {"--gpu-memory-utilization"});
}

TEST(Host, KerasIsAskedForASmallerBatch) {
  expect_on(first_screen("The notebook's kernel died in training\n\nbatch_size = 16\nmodel.fit(x_train, y_train, "
                         "batch_size=batch_size, epochs=20)"),
            "a smaller batch_size");
}

}  // namespace
}  // namespace headroom::doctor
