// Failures beside the steps of a training: saves, sessions, shared memory, the loop around a prediction. Sentences of
// our own.
#include "first_screen.h"

namespace headroom::doctor {
namespace {

TEST(StageAndPlace, OneProcessSavesByTheHost) {
  const std::string text = first_screen(
      "The model cannot be saved, it fails when saving the weights: CUDA out of memory. Tried to allocate 20.00 MiB "
      "(GPU "
      "0; 15.00 GiB total capacity; 13.00 GiB already allocated; 8.00 MiB free)");
  expect_on(text, "v.cpu()");
  expect_none_of(text, {"FSDP", "ZeRO", "gradient_checkpointing"});
  expect_on(first_screen("CUDA out of memory while saving the checkpoint, with FSDP on 4 GPUs"), "SHARDED_STATE_DICT");
}

TEST(StageAndPlace, ASessionThatDoesNotStartFindsTheDeviceTaken) {
  const std::string text =
      first_screen("tensorflow.python.framework.errors_impl.InternalError: Failed to create session.");
  expect_on(text, "OUT OF MEMORY tensorflow");
  expect_on(text, "1 nvidia-smi");
  expect_on(text, "allow_growth = True");
}

TEST(StageAndPlace, AConstantThatFindsNoRoomIsNoMatterOfTheBatch) {
  const std::string text = first_screen(
      "ResourceExhaustedError: OOM when allocating tensor of shape [] and type float [[node init/stddev = Const]]");
  expect_on(text, "full before any batch");
  expect_on(text, "1 nvidia-smi");
}

TEST(StageAndPlace, SharedMemoryOfNcclHasNoLoader) {
  const std::string text = first_screen(
      "NCCL WARN Call to posix_fallocate failed: No space left on device\nNCCL WARN Error while creating shared memory "
      "segment nccl-shm-recv-1-0-1-2 (size 9637888)");
  expect_on(text, "--shm-size");
  expect_none_of(text, {"DataLoader", "data-loader"});
}

TEST(StageAndPlace, ATensorThatCannotBeOpenedIsAFile) {
  const std::string text =
      first_screen("RuntimeError: unable to open shared memory object </torch_11_22> in read-write mode");
  expect_on(text, "ulimit -n");
  expect_on(text, "set_sharing_strategy");
}

TEST(StageAndPlace, ALoopKeepsWhatItsPartsLeave) {
  const std::string text = first_screen(
      "Inference on my frames: 10 of them work. With 200 I call it for batches of 10 inside a loop, but I still get "
      "CUDA "
      "out of memory.");
  expect_on(text, "inside the loop; results to the host");
}

TEST(StageAndPlace, AStageThatFailedOtherwiseIsNotOffered) {
  const std::string text = first_screen(
      "LoRA of a 7B model on 8 GPUs: with ZeRO-3 I get an error about shapes, so I use ZeRO-2, and the training runs "
      "out "
      "of GPU memory.");
  expect_none_of(text, {"\"stage\": 3", "\"offload_param\""});
}

TEST(StageAndPlace, ABaseThatFillsEveryDevice) {
  const std::string text =
      first_screen("lora dpo of yi34b on A100x8x80G: CUDA out of memory, per_device_train_batch_size 1");
  expect_on(text, "every GPU keeps the whole base");
  expect_on(text, "1 the base in 4 bits");
}

TEST(StageAndPlace, BehindTheFirstEpochComesTheValidation) {
  const std::string text =
      first_screen("My segmentation network runs out of GPU memory after the first epoch, --bs_trn 1");
  expect_on(text, "1 in PyTorch: the validation: a batch of 1 there");
  expect_none_of(text, {"a smaller batch,"});
}

TEST(StageAndPlace, ALimitOfPixelsInVain) {
  const std::string text =
      first_screen("Even if I set `max_pixels`, my Qwen2-VL training still runs out of CUDA memory.");
  expect_on(text, "does the limit reach the processor?");
  expect_none_of(text, {"max_pixels=602112"});
}

TEST(StageAndPlace, OthersOnTheSameDevice) {
  expect_on(first_screen("训练时 CUDA error: out of memory，服务器上别人也在用同一张卡"), "1 nvidia-smi");
}

TEST(StageAndPlace, AnEvaluationThatFillsTheHost) {
  const std::string text = first_screen("The evaluation of my detector runs out of RAM (not GPU) after 9000 images");
  expect_on(text, "results reduced or written batch by batch");
  const std::string nnunet = first_screen("nnU-Net: RuntimeError: One or more background workers are no longer alive.");
  expect_on(nnunet, "nnUNet_n_proc_DA");
}

TEST(StageAndPlace, ASaveInCodeIsASave) {
  expect_on(first_screen("torch.save(model.state_dict()) raises CUDA out of memory at the end of epoch 1"), "v.cpu()");
}

TEST(StageAndPlace, OtherWordsForTheSame) {
  expect_on(first_screen("Training on one V100: error \"out of the memory\" at batch size 3"), "OUT OF MEMORY");
}

}  // namespace
}  // namespace headroom::doctor
