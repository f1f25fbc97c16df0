// The command of a failed program, read from its log.
#include "doctor/answer/log_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headroom::doctor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(LogCommand, ArgumentsOfAServer) {
  EXPECT_THAT(
      command_in_log("INFO api_server.py:527] args: Namespace(host=None, port=8000, lora_modules=None, "
                     "model='/data/model', disable_log=False, trust_remote_code=True, allowed=['*'], "
                     "tensor_parallel_size=2, gpu_memory_utilization=0.7)\n"),
      ElementsAre("python", "-m", "vllm.entrypoints.openai.api_server", "--port", "8000", "--model", "/data/model",
                  "--trust-remote-code", "--tensor-parallel-size", "2", "--gpu-memory-utilization", "0.7"));
  EXPECT_THAT(
      command_in_log("server_args=ServerArgs(model_path='m', mem_fraction_static=0.88)"),
      ElementsAre("python", "-m", "sglang.launch_server", "--model-path", "m", "--mem-fraction-static", "0.88"));
}

TEST(LogCommand, AListOfWordsOfALauncher) {
  EXPECT_THAT(command_in_log("sigkill_handler] ['/usr/bin/python', '-u', 'train.py', '--bf16'] exits with -9"),
              ElementsAre("/usr/bin/python", "-u", "train.py", "--bf16"));
}

TEST(LogCommand, ALineThatSomebodyTyped) {
  EXPECT_THAT(
      command_in_log("I ran\n$ CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 2 \\\n    train.py --name 'a b'\n"
                     "and got an error\n"),
      ElementsAre("CUDA_VISIBLE_DEVICES=0,1", "torchrun", "--nproc_per_node", "2", "train.py", "--name", "a b"));
  EXPECT_THAT(command_in_log("vllm serve Qwen/Qwen2.5-7B --max-model-len 8192\n"),
              ElementsAre("vllm", "serve", "Qwen/Qwen2.5-7B", "--max-model-len", "8192"));
  EXPECT_THAT(command_in_log("$ sudo docker run --gpus all vllm/vllm-openai --model m\n"),
              ElementsAre("sudo", "docker", "run", "--gpus", "all", "vllm/vllm-openai", "--model", "m"));
  EXPECT_THAT(command_in_log("nohup sglang serve --model-path m\n"),
              ElementsAre("nohup", "sglang", "serve", "--model-path", "m"));
  for (const char* prose : {"vllm serve fails on my 4090\n", "python is slow --really\n", "deepspeed\n",
                            "see torchrun and accelerate launch\n", "$ \\\n", ""})
    EXPECT_THAT(command_in_log(prose), IsEmpty()) << prose;
}

TEST(LogCommand, ACommentOfAFileExplainsIt) {
  EXPECT_THAT(
      command_in_log("# Trains on two devices. Start it with\n#   tune run --nproc_per_node 2 a --config b\nx: 1\n"),
      IsEmpty());
  EXPECT_THAT(command_in_log("# cd work\n# python train.py --bf16\n"), ElementsAre("python", "train.py", "--bf16"));
  EXPECT_THAT(command_in_log("# OMP_NUM_THREADS=2 python train.py --bf16\n"),
              ElementsAre("OMP_NUM_THREADS=2", "python", "train.py", "--bf16"));
}

TEST(LogCommand, NothingElse) {
  EXPECT_THAT(command_in_log("loss: ['a', 'b'] Namespace(lr=0.1)"), IsEmpty());
  EXPECT_THAT(command_in_log("args: Namespace(gpu_memory_utilization=0.9, model='cut"), IsEmpty());
}

}  // namespace
}  // namespace headroom::doctor
