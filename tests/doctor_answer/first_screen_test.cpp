// What the first screen must not say: options of another program, a step where weights are loaded, numbers that the
// post has lower already, and guesses told as facts. Sentences of our own.
#include "first_screen.h"

namespace headroom::doctor {
namespace {

const std::vector<std::string_view>& of_pytorch() {
  static const std::vector<std::string_view> kWords = {"DataLoader",      "optimizer.step", "no_grad",
                                                       "from_pretrained", ".item()",        "scaled_dot",
                                                       "pytorch-cuda",    "PyTorch",        "gradient_checkpointing"};
  return kWords;
}

constexpr const char* kFullDevice =
    "RuntimeError: CUDA out of memory. Tried to allocate 96.00 MiB (GPU 0; 23.70 GiB total capacity; 22.40 GiB already "
    "allocated; 21.00 MiB free; 22.60 GiB reserved in total by PyTorch)\n";

TEST(FirstScreen, DarknetHasSubdivisions) {
  for (const char* post :
       {"./darknet detector train my.data my.cfg conv.74\n CUDA Error: out of memory: File exists",
        "Training ends with CUDA Error: out of memory, the cfg has batch=64 subdivisions=8 width=608 height=608",
        "CUDA Error: out of memory\n./src/cuda.c:36: check_error: Assertion failed, yolov3 training"}) {
    const std::string text = first_screen(post);
    expect_on(text, "subdivisions=<double>");
    expect_on(text, "a smaller width and height");
    expect_none_of(text, of_pytorch());
  }
}

TEST(FirstScreen, MxnetAndCaffeHaveTheirOwnOptions) {
  const std::string mxnet = first_screen(
      "mxnet.base.MXNetError: [10:00:01] src/storage/./pooled_storage_manager.h:107: cudaMalloc failed: out of memory\n"
      "mod.fit(train, num_epoch=10)");
  expect_on(mxnet, "--batch-size");
  expect_none_of(mxnet, of_pytorch());
  expect_none_of(mxnet, {"model.fit(", "TF_"});
  const std::string caffe = first_screen(
      "I train on my own images\nF0101 syncedmem.cpp:56] Check failed: error == cudaSuccess (2 vs. 0)  out of memory");
  expect_on(caffe, ".prototxt");
  expect_none_of(caffe, of_pytorch());
  const std::string detector = first_screen(
      "py-faster-rcnn, tools/train_net.py\nsyncedmem.cpp:56] Check failed: error == cudaSuccess (2 vs. 0) out of "
      "memory");
  expect_on(detector, "TRAIN.SCALES");
  expect_none_of(detector, of_pytorch());
  const std::string ssd =
      first_screen("caffe-ssd, ssd_pascal.py\nCheck failed: error == cudaSuccess (2 vs. 0) out of memory");
  expect_on(ssd, "accum_batch_size");
  const std::string second =
      first_screen("Detectron: [enforce fail at context_gpu.cu:343] error == cudaSuccess. 2 vs 0. out of memory");
  expect_on(second, "TRAIN.IMS_PER_BATCH");
  expect_none_of(second, of_pytorch());
}

TEST(FirstScreen, TheanoAndTorch7AreNotPyTorch) {
  const std::string theano = first_screen(
      "MemoryError: Error allocating 411041792 bytes of device memory (out of memory). Driver report 191488000 bytes "
      "free and 2147483648 bytes total\nUsing Theano backend.");
  expect_on(theano, "THEANO_FLAGS");
  expect_none_of(theano, of_pytorch());
  const std::string lua = first_screen(
      "/root/install/bin/luajit: cuda runtime error (2) : out of memory at /tmp/luarocks_cutorch/THCStorage.cu:44");
  expect_on(lua, "-batch_size <half>");
  expect_none_of(lua, of_pytorch());
}

TEST(FirstScreen, APyTorchModelNamedAfterDarknetIsPyTorchs) {
  const std::string text =
      first_screen(std::string("import torch, Darknet(cfg), weights darknet53, training\n") + kFullDevice);
  expect_none_of(text, {"subdivisions"});
}

TEST(FirstScreen, NothingOfPyTorchForAnUnknownProgram) {
  for (const char* post : {"My solver stops: cudaMalloc failed: out of memory",
                           "the simulation stops, CUDA error: out of memory, each evaluation takes more"})
    expect_none_of(first_screen(post), of_pytorch());
}

// A person's words alone tell no program: what is PyTorch's is said to be.
TEST(FirstScreen, CodeOfPyTorchIsCalledThatBesideWordsAlone) {
  const std::string text = first_screen("my GPU memory is not enough when the evaluation starts");
  expect_on(text, "in PyTorch: with torch.no_grad()");
  expect_none_of(text, {"optimizer.step"});
}

TEST(FirstScreen, ALoadIsNotAnsweredWithAStep) {
  for (const char* frames :
       {"Traceback (most recent call last):\n  File \"coder/infer_code.py\", line 30, in main\n    engine = "
        "make(args)\n  File \"coder/infer_code.py\", line 12, in make\n    model = model.half().cuda()\n",
        "Traceback (most recent call last):\n  File \"run.py\", line 9, in main\n    net.load_state_dict(state)\n",
        "Traceback (most recent call last):\n  File \"tune.py\", line 9, in main\n    model = "
        "AutoModel.from_pretrained(name)\n",
        "Traceback (most recent call last):\n  File \"a.py\", line 9, in main\n    model = Net(c)\n  File "
        "\"/x/layers.py\", line 9, in __init__\n    self.w = Parameter(torch.empty(n, n))\n"}) {
    const std::string text = first_screen(frames + std::string(kFullDevice));
    expect_on(text, "in load");
    expect_on(text, "weights in 8 or 4 bits");
    expect_none_of(text, {"batch_size", "gradient_checkpointing", "Adam", "no_grad", "a smaller input"});
  }
}

TEST(FirstScreen, ALoadIsReadFromASentenceToo) {
  const std::string text = first_screen("import torch\nmodel.cuda() of a small net says CUDA error: out of memory");
  expect_on(text, "weights were loaded or moved");
  expect_none_of(text, {"batch_size", "too large", "a smaller input"});
}

TEST(FirstScreen, AFewBytesOfADeviceAreNoModelThatIsTooLarge) {
  const std::string text = first_screen(
      "Traceback (most recent call last):\n  File \"a.py\", line 3, in main\n    model.cuda()\nRuntimeError: CUDA out "
      "of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; 44.00 MiB already allocated; 4.00 MiB "
      "free; 60.00 MiB reserved in total by PyTorch)");
  expect_on(text, "nvidia-smi");
  expect_none_of(text, {"too large", "find no room: nothing"});
}

TEST(FirstScreen, ALengthThatFailedIsNotExceeded) {
  for (const char* post : {"vllm: CUDA out of memory, even if I set max-model-len to 1024",
                           "vllm: the context length is 1024, and still CUDA out of memory"})
    expect_none_of(first_screen(post), {"8192", "4096", "2048"});
  const std::string text = first_screen("vllm with gpu_memory_utilization 0.6, CUDA out of memory");
  expect_none_of(text, {"utilization 0.80", "utilization 0.7"});
}

TEST(FirstScreen, ATitleIsNotTheMessage) {
  const std::string text = first_screen(
      "CUDA out of memory. Tried to allocate 150.00 GiB\n\nThe video network stops with\nRuntimeError: CUDA out of "
      "memory. Tried to allocate 150.00 GiB (GPU 0; 23.70 GiB total capacity; 9.40 GiB already allocated; 12.00 GiB "
      "free; 9.60 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting "
      "max_split_size_mb to avoid fragmentation.");
  expect_on(text, "12.00 GiB free of 23.70 GiB");
  expect_on(text, "xformers");
  expect_none_of(text, {"expandable_segments", "empty_cache", "different messages"});
}

TEST(FirstScreen, LlamaCppTakesOneRequestAtATime) {
  const std::string text = first_screen(
      "llama.cpp stops\nggml_new_tensor_impl: not enough space in the context's memory pool (needed 900000000, "
      "available 805306368)");
  expect_on(text, "-b 128");
  expect_none_of(text, {"--parallel"});
}

TEST(FirstScreen, AStyleTransferHasNeitherBatchNorEightBits) {
  const std::string text = first_screen(
      "th neural_style.lua -gpu 0 -style_image a.jpg\ncuda runtime error (2) : out of "
      "memory at cutorch/lib/THC/generic/THCStorage.cu:66");
  expect_on(text, "-image_size 256");
  expect_none_of(text, {"batch_size", "bitsandbytes", "8 bits"});
}

TEST(FirstScreen, ALayerForPositionsMakesNoEmbeddings) {
  const std::string text =
      first_screen("CUDA out of memory, in net/positional_embedding.py, for a cloud of many points");
  expect_none_of(text, {"a program that only predicts"});
}

TEST(FirstScreen, SmallImagesAreNotMadeLarger) {
  const std::string text = first_screen(
      "My classifier takes images of 64x64.\nRuntimeError: CUDA out of memory. Tried to allocate 40.00 GiB (GPU 0; "
      "23.70 "
      "GiB total capacity; 3.00 GiB already allocated; 19.00 GiB free; 3.50 GiB reserved in total by PyTorch)");
  expect_none_of(text, {"512", "is_causal"});
}

TEST(FirstScreen, AGeneratorTrainsNothing) {
  for (const char* post : {"python generate.py in my text generator\n", "the webui of an image generator, launch.py\n",
                           "gradio app of a voice, python demo.py\n"})
    expect_none_of(first_screen(post + std::string(kFullDevice)),
                   {"optimizer.step", "gradient_checkpointing", "Adam", "accumulation"});
}

TEST(FirstScreen, WeightsInPartsAreNotCountedWhole) {
  const std::string text =
      first_screen("python server.py --model Qwen2.5-72B -tp 8 on A100 80GB\nRuntimeError: CUDA out of memory.");
  expect_none_of(text, {"134", "larger than the device"});
  Request request;
  request.parameters = "72B";
  const std::string figures = first_screen("I serve it by vllm with -tp 8: CUDA out of memory", request);
  expect_none_of(figures, {"134", "145"});
}

TEST(FirstScreen, AShorterPromptIsNotCountedWhereAnswersHaveALength) {
  Request request;
  request.command = {"python",
                     "run_summarization.py",
                     "--model_name_or_path",
                     "gpt2-xl",
                     "--do_train",
                     "--output_dir",
                     "o",
                     "--max_source_length",
                     "1024",
                     "--max_target_length",
                     "512",
                     "--per_device_train_batch_size",
                     "8"};
  request.gpu = "24GiB";
  std::istringstream nothing;
  const Report report = answer(request, nothing).report;
  bool offered = false;
  for (const Remedy& remedy : report.diagnosis.remedies) {
    if (remedy.name != "sequence-length") continue;
    offered = true;
    EXPECT_FALSE(remedy.saves_bytes.has_value()) << remedy.set;
  }
  EXPECT_TRUE(offered);
  EXPECT_TRUE(report.diagnosis.smallest_fitting_set.empty());
}

TEST(FirstScreen, ALimitIsMeasuredNotMultiplied) {
  const std::string slurm = first_screen(
      "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.0. Some of your processes may have been killed by "
      "the "
      "cgroup out-of-memory handler.\nReqMem 64G");
  expect_on(slurm, "MaxRSS");
  expect_none_of(slurm, {"97G", "96G"});
}

TEST(FirstScreen, GrowthIsToldAsWhatThePostSays) {
  const std::string grows = first_screen(
      "Training with PyTorch: the GPU memory increases every epoch, then CUDA out of "
      "memory");
  expect_on(grows, "by the post memory grows");
  expect_none_of(grows, {"the graphs of past steps are kept"});
  const std::string later = first_screen("CUDA out of memory after 7 epochs of training my network");
  expect_on(later, "does not say that memory grew");
  expect_none_of(later, {"by the post memory grows", "accumulat"});
}

TEST(FirstScreen, WhichMemoryIsOpenUnlessThePostSaysSo) {
  const std::string open = first_screen("my training goes from 21G to 38G and then it is out of memory");
  expect_on(open, "does not say whether a device's memory or the host's");
  expect_none_of(open, {"pytorch-cuda", "38.00 GiB", "21.00 GiB"});
  expect_none_of(first_screen("my training uses 30 GB of VRAM, then it is out of memory"), {"does not say whether"});
}

TEST(FirstScreen, WhereAServerFailedIsSaidOnlyIfItIsShown) {
  expect_none_of(first_screen("vllm: CUDA out of memory"), {"outside the KV cache"});
}

// A traceback in a quote is the asker's own; what it failed in is told by its last line.
TEST(FirstScreen, AValidationHasABatchOfItsOwn) {
  const std::string frames =
      "> Traceback (most recent call last):\n>   File \"run.py\", line 9, in train\n>     loss = "
      "self.validate(batches)\n"
      "> RuntimeError: CUDA error: out of memory\n";
  const std::string own = first_screen("My network stops every hour\n\n" + frames);
  expect_on(own, "in eval");
  expect_none_of(own, {"gradient_checkpointing", "accumulation"});
  const std::string translator =
      first_screen("Out of memory at validation time\n\npython OpenNMT-py/train.py -batch_size 12\n\n" + frames);
  expect_on(translator, "-valid_batch_size");
  expect_none_of(translator, {"gradient_checkpointing", "no_grad", "DataLoader"});
}

TEST(FirstScreen, ATitleSaysWhatFailed) {
  const std::string message =
      "CUDA out of memory. Tried to allocate 18.00 MiB (GPU 0; 14.76 GiB total capacity; 12.80 GiB already allocated; "
      "7.00 MiB free; 13.70 GiB reserved in total by PyTorch)\n";
  expect_on(first_screen("Saving the adapter fails\n\nThe steps are through, then this:\n\n" + message), "saving");
  expect_none_of(first_screen("Adapter of rank 8\n\nThe steps begin, then this:\n\n" + message), {"saving"});
}

TEST(FirstScreen, LlamaFactoryEvaluatesWithTheTrainer) {
  const std::string text = first_screen("LLaMA-Factory: every evaluation ends out of memory, the steps go well");
  expect_on(text, "eval_accumulation_steps");
  expect_none_of(text, {"YOLO"});
}

TEST(FirstScreen, AnAssignmentIsNoCommandOfLlamaCpp) {
  expect_none_of(first_screen("  File \"rpc/server.py\", line 7, in run\n    server = Engine(arguments, context)\n"),
                 {"--parallel", "--ctx-size"});
}

TEST(FirstScreen, AnAmountOfRamBesideAGpuIsTheGpus) {
  expect_none_of(first_screen("Out of memory with 12GB of RAM\n\nWhat GPU do I need for this network?"),
                 {"OUT OF MEMORY host"});
  expect_on(first_screen("Out of memory with 12GB of RAM\n\nMy computer has a GPU too."), "OUT OF MEMORY host");
  expect_on(first_screen("Out of memory with 12GB of RAM"), "OUT OF MEMORY host");
}

TEST(FirstScreen, AnInferenceScriptIsAFile) {
  const std::string text = first_screen(
      "CUDA out of memory while training a vocoder on 8 GB. Batch size is 1 already, and a smaller segment_size did "
      "not "
      "help. I do not see how to train with fp16, only an option in inference scripts.");
  expect_none_of(text, {"no_grad", "a backward pass that never comes", "for evaluation"});
  expect_on(text, "fewer layers");
  expect_on(text, "16 bits");
  expect_on(first_screen("CUDA out of memory in inference, my own loop over the images"), "no_grad");
}

TEST(FirstScreen, WeightsThatLoadHaveNoDataLoader) {
  const std::string server = first_screen("python server.py --chat\nLoading my-6b, takes a minute\nKilled");
  expect_none_of(server, {"DataLoader", "batch_size"});
  const std::string file = first_screen(
      "My notebook runs out of RAM at torch.load(path, map_location=\"cpu\"), the machine has 12 GB of RAM");
  expect_on(file, "map_location=");
  expect_none_of(file, {"DataLoader", "from_pretrained"});
  const std::string arrays = first_screen(
      "Traceback (most recent call last):\n  File \"train_net.py\", line 8, in <module>\n    part = cubes[chosen, "
      "...]\nMemoryError");
  expect_on(arrays, "np.memmap");
  expect_none_of(arrays, {"DataLoader", "batch_size"});
}

TEST(FirstScreen, WslGetsNoMoreThanTheMachineHas) {
  const std::string text = first_screen("The model is being loaded in WSL2, with 16 GB of RAM: Killed");
  expect_on(text, "memory=<the machine's RAM less 2>GB");
  expect_none_of(text, {"pin_memory"});
}

TEST(FirstScreen, SharedMemoryOfAMachineAndOfAContainer) {
  const std::string bus = "RuntimeError: DataLoader worker (pid 31) is killed by signal: Bus error.\n";
  const std::string node = first_screen("num_workers=48 on a node of our cluster\n" + bus);
  expect_on(node, "df -h /dev/shm");
  expect_on(node, "slower loading");
  expect_none_of(node, {"pin_memory", "5 % slower", "--ipc=host"});
  expect_on(first_screen("in docker\n" + bus), "--ipc=host");
}

TEST(FirstScreen, SpeechThatIsMadeHasNoImages) {
  const std::string text = first_screen(
      "CUDA out of memory: I change max_mel_frames and batch_size of tacotron training, but I still have the error");
  expect_on(text, "outputs_per_step");
  expect_none_of(text, {"images", "resolution"});
  expect_none_of(first_screen("CUDA out of memory in tacotron training with batch_size=48"), {"tokens", "images"});
}

TEST(FirstScreen, SeveralDevicesMakeNoLanguageModel) {
  const std::string text = first_screen("A batch of 4 volumes, 256x256x256 each, is out of memory on our GPUs");
  expect_none_of(text, {"device_map", "AWQ", "load_in_4bit"});
}

TEST(FirstScreen, AForwardPassAlone) {
  const std::string caffe = first_screen(
      "syncedmem.cpp:71] Check failed: error == cudaSuccess (2 vs. 0)  out of memory\nthe script ends in "
      "net.forward()");
  expect_on(caffe, "input_shape");
  expect_none_of(caffe, {"solver", "iter_size", "TRAIN"});
  const std::string keras = first_screen(
      "from tensorflow.keras import models\nscores = model.predict(pictures)\n"
      "Could not create cudnn handle: CUDNN_STATUS_ALLOC_FAILED");
  expect_none_of(keras, {"model.fit("});
  expect_on(
      first_screen("F0101 10:00:00.000001 1 syncedmem.cpp:56] Check failed: error == cudaSuccess (2 vs. 0) out of "
                   "memory\n./tools/train_net.py --gpu 0 --solver s.prototxt --weights w.caffemodel"),
      "TRAIN.SCALES");
}

TEST(FirstScreen, AMemoryErrorBesideADevice) {
  const std::string text = first_screen(
      "Traceback (most recent call last):\n  File \"a.py\", line 5, in rows\n    block = np.ones([64, "
      "900])\nMemoryError\n\n"
      "Sometimes instead: failed to allocate 1.00G (1073741824 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of "
      "memory\ntensorflow 1.10");
  expect_on(text, "for the MemoryError");
}

TEST(FirstScreen, EightBitWeightsAreSaved) {
  const std::string text = first_screen("CUDA out of memory while saving the model, load_in_8bit=True with LoRA");
  expect_on(text, "bitsandbytes==0.37.2");
  expect_on(text, "the adapter alone");
  const std::string whole = first_screen("CUDA out of memory in model.save_pretrained, the steps before it are fine");
  expect_on(whole, "with 8-bit weights");
  expect_none_of(first_screen("CUDA out of memory while saving the model with FSDP"), {"bitsandbytes"});
}

}  // namespace
}  // namespace headroom::doctor
