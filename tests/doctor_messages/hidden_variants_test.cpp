// Messages of the known kinds with other numbers, units and surroundings than in the real ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "doctor/messages/log_filter.h"
#include "doctor/messages/log_scanner.h"

namespace headroom::doctor {
namespace {

constexpr int64_t kKi = 1024, kMi = 1024 * kKi, kGi = 1024 * kMi;
int64_t gib(double n) { return std::llround(n * static_cast<double>(kGi)); }
int64_t mib(double n) { return std::llround(n * static_cast<double>(kMi)); }

struct Expected {
  const char* text;
  const char* framework;
  std::optional<int64_t> requested, capacity, allocated, free, process;
  std::optional<int> device;
};

const std::optional<int64_t> kNone;
const std::optional<int> kNo;

TEST(Variants, FrameworkAndFigures) {
  const Expected cases[] = {
      {"CUDA out of memory. Tried to allocate 512.00 KiB (GPU 13; 1.50 TiB total capacity; 900 bytes already "
       "allocated; "
       "17.00 KiB free; 2.00 MiB reserved in total by PyTorch)",
       "pytorch-cuda", 512 * kKi, gib(1536), 900, 17 * kKi, kNone, 13},
      {"RuntimeError: CUDA error: out of memory", "pytorch-cuda", kNone, kNone, kNone, kNone, kNone, kNo},
      {"RuntimeError: HIP error: out of memory", "pytorch-hip", kNone, kNone, kNone, kNone, kNone, kNo},
      {"RuntimeError: CUDA driver error: out of memory", "pytorch-cuda", kNone, kNone, kNone, kNone, kNone, kNo},
      {"torch.cuda.OutOfMemoryError: ", "pytorch-cuda", kNone, kNone, kNone, kNone, kNone, kNo},
      {"RuntimeError: Invalid buffer size: 12.50 GB", "pytorch-mps", gib(12.5), kNone, kNone, kNone, kNone, kNo},
      {"RuntimeError: $ Torch: not enough memory: you tried to allocate 12GB. Buy new RAM! at /pytorch/x.cpp:201",
       "pytorch-cpu", gib(12), kNone, kNone, kNone, kNone, kNo},
      {"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array with shape (1000, 1000000) "
       "and "
       "data type float64",
       "python", gib(7.45), kNone, kNone, kNone, kNone, kNo},
      {"RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "cublas", kNone,
       kNone, kNone, kNone, kNone, kNo},
      {"RuntimeError: CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=2 ; hostname=x", "cublas", kNone, kNone, kNone,
       kNone, kNone, 2},
      {"cuda_blas.cc:238] failed to create cublas handle: CUBLAS_STATUS_NOT_INITIALIZED", "cublas", kNone, kNone, kNone,
       kNone, kNone, kNo},
      {"RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", "cudnn", kNone, kNone, kNone, kNone, kNone, kNo},
      {"RuntimeError: Unable to find a valid cuDNN algorithm to run convolution", "cudnn", kNone, kNone, kNone, kNone,
       kNone, kNo},
      {"node7:3141:3160 [5] NCCL INFO x\nnode7:3141:3160 [5] transport/net.cc:99 NCCL WARN Cuda failure 2 'out of "
       "memory'",
       "nccl", kNone, kNone, kNone, kNone, kNone, 5},
      {"gpu1:42:80 [3] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device", "nccl",
       kNone, kNone, kNone, kNone, kNone, 3},
      {"[3] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-Ab12cD to 33030532 bytes", "nccl",
       33030532, kNone, kNone, kNone, kNone, 3},
      {"numba.cuda.cudadrv.driver.CudaAPIError: [2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY", "cuda",
       kNone, kNone, kNone, kNone, kNone, kNo},
      {"OOM when allocating tensor with shape[2,3,5] and type bfloat16 on "
       "/job:localhost/replica:0/task:0/device:GPU:11 by "
       "allocator GPU_11_bfc",
       "tensorflow", 60, kNone, kNone, kNone, kNone, 11},
      {"W tensorflow/core/common_runtime/bfc_allocator.cc:275] Allocator (GPU_2_bfc) ran out of memory trying to "
       "allocate "
       "1.50GiB (rounded to 1610612736)requested by op Conv2D",
       "tensorflow", gib(1.5), kNone, kNone, kNone, kNone, 2},
      {"W external/xla/xla/tsl/framework/bfc_allocator.cc:501] Allocator (GPU_0_bfc) ran out of memory trying to "
       "allocate "
       "16.00GiB (rounded to 17179869184)requested by op",
       "jax", gib(16), kNone, kNone, kNone, kNone, 0},
      {"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12.50GiB.",
       "jax", gib(12.5), kNone, kNone, kNone, kNone, kNo},
      {"RuntimeError: Resource exhausted: Failed to allocate request for 9.54GiB (10240000000B) on device ordinal 3",
       "jax", 10240000000, kNone, kNone, kNone, kNone, 3},
      {"RESOURCE_EXHAUSTED: Attempting to reserve 1.25G at the bottom of memory. That was not possible. There are "
       "640.00M "
       "free, 0B reserved, and 640.00M reservable.",
       "xla-tpu", gib(1.25), kNone, kNone, mib(640), kNone, kNo},
      {"ValueError: Free memory on device (5.10/15.77 GiB) on startup is less than desired GPU memory utilization "
       "(0.85, "
       "13.40 GiB). Decrease",
       "vllm", gib(13.40), gib(15.77), kNone, gib(5.10), kNone, kNo},
      {"RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try "
       "lowering "
       "`max_num_seqs` or `gpu_memory_utilization` when initializing the engine.",
       "vllm", kNone, kNone, kNone, kNone, kNone, kNo},
      {"RuntimeError: Prefill out of memory. Try to lower your batch size.\nTry to allocate 8192 tokens.\nAvailable "
       "tokens: "
       "5248 (available_size=5248 + evictable_size=0)\n",
       "sglang", kNone, kNone, kNone, kNone, kNone, kNo},
      {"[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, mCudaStream->get()): out of memory "
       "(x.h:112)",
       "tensorrt-llm", kNone, kNone, kNone, kNone, kNone, kNo},
      {"[TRT] [W] Requested amount of GPU memory (8589934592 bytes) could not be allocated.", "tensorrt-llm", 8 * kGi,
       kNone, kNone, kNone, kNone, kNo},
      {"[virtualMemoryBuffer.cpp::resizePhysical::145] Error Code 2: OutOfMemory (Requested size was 10485760 bytes.)",
       "tensorrt-llm", 10 * kMi, kNone, kNone, kNone, kNone, kNo},
      {"ggml_backend_metal_buffer_type_alloc_buffer: error: failed to allocate buffer, size =  1234.50 MiB",
       "llama.cpp", mib(1234.5), kNone, kNone, kNone, kNone, kNo},
      {"CUDA error: out of memory\n  current device: 2, in function ggml_cuda_pool at ggml-cuda.cu:400", "llama.cpp",
       kNone, kNone, kNone, kNone, kNone, 2},
      {"Error: model requires more system memory (5.6 GiB) than is available (412.5 MiB)", "ollama", gib(5.6), kNone,
       kNone, mib(412.5), kNone, kNo},
      {"Error: llama runner process has terminated: cudaMalloc failed: out of memory", "ollama", kNone, kNone, kNone,
       kNone, kNone, kNo},
      {"RuntimeError: [malloc_or_wait] Unable to allocate 2147483648 bytes.", "mlx", 2 * kGi, kNone, kNone, kNone,
       kNone, kNo},
      {"libc++abi: std::runtime_error: [METAL] Command buffer execution failed: Insufficient Memory "
       "(00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)",
       "mlx", kNone, kNone, kNone, kNone, kNone, kNo},
      {"bfc_arena.cc BFCArena::AllocateRawInternal(size_t) Available memory of 1048576 is smaller than requested bytes "
       "of "
       "2830172160",
       "onnxruntime", 2830172160, kNone, kNone, 1048576, kNone, kNo},
      {"Out of memory error on GPU 3. Cannot allocate 2.500000GB memory on GPU 3, 14.250000GB memory has been "
       "allocated and "
       "available memory is only 512.000000MB.",
       "paddle", gib(2.5), kNone, gib(14.25), mib(512), kNone, 3},
      {"cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 1,073,741,824 bytes (allocated so far: "
       "12,373,894,656 "
       "bytes, limit set to: 20,000,000,000 bytes).",
       "cupy", kGi, kNone, 12373894656, kNone, kNone, kNo},
      {"[12.5] Memory cgroup out of memory: Killed process 77 (python3) total-vm:9000kB, anon-rss:4000kB, "
       "file-rss:20kB, "
       "shmem-rss:4kB, UID:0",
       "linux-oom", kNone, kNone, kNone, kNone, 4024 * kKi, kNo},
      {"slurmstepd: error: Step 123.0 exceeded memory limit (12345678 > 8388608), being killed", "slurm", kNone,
       8388608 * kKi, kNone, kNone, 12345678 * kKi, kNo},
      {"srun: error: gpu017: task 3: Out Of Memory", "slurm", kNone, kNone, kNone, kNone, kNone, kNo},
      {"    State:          Terminated\n      Reason:       OOMKilled\n      Exit Code:    137", "kubernetes", kNone,
       kNone, kNone, kNone, kNone, kNo},
      {"The node was low on resource: memory. Container main was using 12Gi, request is 8Gi.", "kubernetes", kNone,
       kNone, kNone, kNone, gib(12), kNo},
      {"[INFO] [launch.py:347:main] Process 55 exits with return code = -9", "launcher", kNone, kNone, kNone, kNone,
       kNone, kNo},
      {"subprocess.CalledProcessError: Command '['python', 'x.py']' died with <Signals.SIGKILL: 9>.", "launcher", kNone,
       kNone, kNone, kNone, kNone, kNo},
      {"starting\nKilled\n", "launcher", kNone, kNone, kNone, kNone, kNone, kNo},
      {"run.sh: line 5: 12345 Killed                  python train.py", "launcher", kNone, kNone, kNone, kNone, kNone,
       kNo},
      {"Process finished with exit code 137 (interrupted by signal 9: SIGKILL)", "launcher", kNone, kNone, kNone, kNone,
       kNone, kNo},
      {"ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\nMemory on the node "
       "(IP: "
       "172.17.0.2, ID: 8c5a) where the task (task ID: 41617, name=f, pid=548, memory used=12.18GB) was running was "
       "21.91GB "
       "/ 33.28GB (0.658192), which exceeds the memory usage threshold of 0.65.",
       "launcher", kNone, gib(33.28), kNone, kNone, gib(12.18), kNo},
      {"RuntimeError: DataLoader worker (pid 321) is killed by signal: Killed.", "pytorch-dataloader", kNone, kNone,
       kNone, kNone, kNone, kNo},
      {"RuntimeError: unable to write to file </torch_8512_3144>", "pytorch-dataloader", kNone, kNone, kNone, kNone,
       kNone, kNo},
  };
  for (const Expected& c : cases) {
    const LogReport report = scan_log(c.text);
    ASSERT_FALSE(report.messages.empty()) << c.text;
    const Message& m = report.messages[0];
    EXPECT_EQ(m.framework, c.framework) << c.text;
    EXPECT_EQ(m.requested_bytes, c.requested) << c.text;
    EXPECT_EQ(m.capacity_bytes, c.capacity) << c.text;
    EXPECT_EQ(m.allocated_bytes, c.allocated) << c.text;
    EXPECT_EQ(m.free_bytes, c.free) << c.text;
    EXPECT_EQ(m.process_bytes, c.process) << c.text;
    EXPECT_EQ(m.device_index, c.device) << c.text;
    EXPECT_EQ(report.messages.size(), 1u) << c.text << " / " << report.messages.back().text;
    EXPECT_NE(WordScan(filter_words()).tags(c.text) & kMessage, 0u) << c.text;
  }
}

TEST(Variants, NoMessage) {
  for (const char* text :
       {"", "\n", "all good\n", "except torch.cuda.OutOfMemoryError:\n    pass\n", "memory: 12 GiB of 24 GiB used\n",
        "  File \"x.py\", line 3, in f\n    raise torch.cuda.OutOfMemoryError\n",
        "He killed the process of elimination.\n", "INFO: allocated 4 GiB, exit code 0\n",
        "srun: error: Unable to allocate resources: Invalid account\n", "Process exited with code 1370\n",
        "GPU KV cache usage: 99.1%, out of blocks\n", "max seq len (4096) set\n",
        "NCCL WARN Connect to 10.0.0.1 failed\n"}) {
    const LogReport report = scan_log(text);
    EXPECT_TRUE(report.messages.empty()) << text << " -> " << report.messages[0].framework;
  }
}

TEST(Variants, TorchPrivatePoolsAllowedAndProcesses) {
  const LogReport report = scan_log(
      "[rank12]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 4 has a total capacity "
      "of "
      "79.10 GiB of which 11.94 MiB is free. Process 17 has 40.00 GiB memory in use. Process 4000000 has 512.00 MiB "
      "memory "
      "in use. Including non-PyTorch memory, this process has 38.50 GiB memory in use. 39.55 GiB allowed; Of the "
      "allocated "
      "memory 36.00 GiB is allocated by PyTorch, with 1.25 GiB allocated in private pools (e.g., CUDA Graphs), and "
      "700.50 "
      "MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
      "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.");
  ASSERT_EQ(report.messages.size(), 1u);
  const Message& m = report.messages[0];
  EXPECT_EQ(m.rank, 12);
  EXPECT_EQ(m.device_index, 4);
  EXPECT_EQ(m.process_bytes, gib(38.5));
  EXPECT_EQ(m.process_limit_bytes, gib(39.55));
  EXPECT_EQ(m.private_pool_bytes, gib(1.25));
  EXPECT_EQ(m.allocated_bytes, gib(36));
  EXPECT_EQ(m.reserved_unallocated_bytes, mib(700.5));
  EXPECT_EQ(m.reserved_bytes, gib(36) + mib(700.5));
  ASSERT_EQ(m.other_processes.size(), 2u);
  EXPECT_EQ(m.other_processes[1].pid, 4000000);
  EXPECT_EQ(m.other_processes[1].bytes, 512 * kMi);
  ASSERT_GE(m.figures.size(), 6u);
  EXPECT_EQ(m.figures[0].field, "requested");
  EXPECT_EQ(m.figures[0].written, "20.00 MiB");
  EXPECT_EQ(m.figures[0].resolution_bytes, 10486);
}

// The message of a well-known manual, wrapped as there: 0.22 free + 2.14 unallocated just serve 2.22.
TEST(Variants, ManualsMessage) {
  const LogReport report = scan_log(
      "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.22 GiB. GPU 0 has a total capacty of 79.15 GiB of "
      "which "
      "228.38 MiB is free. Including non-PyTorch memory, this process\nhas 78.93 GiB memory in use. Of the allocated "
      "memory "
      "76.28 GiB is allocated by PyTorch, and 2.14 GiB is reserved by PyTorch but\nunallocated. If reserved but "
      "unallocated "
      "memory is large try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory\nManagement "
      "and "
      "PYTORCH_CUDA_ALLOC_CONF\n");
  ASSERT_EQ(report.messages.size(), 1u);
  const Message& m = report.messages[0];
  EXPECT_EQ(m.process_bytes, gib(78.93));
  EXPECT_EQ(m.reserved_unallocated_bytes, gib(2.14));
  EXPECT_EQ(m.free_bytes, mib(228.38));
  EXPECT_EQ(m.format, "torch2_capacty_split");
  EXPECT_EQ(std::count(m.hints.begin(), m.hints.end(), "fragmentation"), 0);
}

TEST(Variants, KvCacheOfVllm) {
  const LogReport report = scan_log(
      "ERROR 05-01 12:00:00 [core.py:396] ValueError: To serve at least one request with the models's max seq len "
      "(8192), "
      "(1.25 GiB KV cache is needed, which is larger than the available KV cache memory (0.50 GiB). Based on the "
      "available "
      "memory, the estimated maximum model length is 3264. Try increasing `gpu_memory_utilization`");
  ASSERT_EQ(report.messages.size(), 1u);
  const Message& m = report.messages[0];
  EXPECT_EQ(m.kv_tokens_wanted, 8192);
  EXPECT_EQ(m.kv_tokens_available, 3264);
  EXPECT_EQ(m.kv_bytes_wanted, gib(1.25));
  EXPECT_EQ(m.kv_bytes_available, gib(0.5));
  EXPECT_EQ(m.phase, "serve_init");
}

TEST(Variants, RepeatsAreMergedAndBounded) {
  const std::string line =
      "RuntimeError: CUDA out of memory. Tried to allocate 32.00 MiB (GPU 0; 7.79 GiB total capacity)\n";
  std::string log;
  for (int i = 0; i < 1000; ++i) log += line;
  EXPECT_EQ(scan_log(log).messages.size(), 1u);
  EXPECT_EQ(scan_log(log).messages[0].repeats, 1000);
  log.clear();
  for (int i = 0; i < 700; ++i) {
    log +=
        "CUDA out of memory. Tried to allocate " + std::to_string(i + 1) + ".00 MiB (GPU 0; 7.79 GiB total capacity)\n";
  }
  const LogReport many = scan_log(log);
  EXPECT_EQ(many.messages.size(), LogScanner::kMessages);
  EXPECT_EQ(many.messages_dropped, 700 - static_cast<int64_t>(LogScanner::kMessages));
}

TEST(Variants, ALogThatRepeatsItselfIsReadEverMoreThinlyButToItsEnd) {
  const std::string line = "CUDA out of memory. Tried to allocate 32.00 MiB (GPU 0; 7.79 GiB total capacity)\n";
  LogScanner scanner;
  for (int i = 0; i < 150'000; ++i) scanner.feed(line);
  scanner.feed(std::string(20, '\n') +
               "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 7.79 GiB total capacity)\n");
  const LogReport report = scanner.finish();
  EXPECT_EQ(report.lines, 150'021);
  EXPECT_GT(report.lines_unread, 10'000);
  ASSERT_EQ(report.messages.size(), 2u);
  EXPECT_EQ(report.messages[0].repeats + report.lines_unread, 150'000);
  EXPECT_EQ(report.messages[1].device_index, 1);
}

TEST(Variants, ManyMessagesInOneLineAndInLongLines) {
  const std::string one = "CUDA out of memory. Tried to allocate 32.00 MiB (GPU 0; 7.79 GiB total capacity) ";
  const std::string two = "CUDA out of memory. Tried to allocate 64.00 MiB (GPU 1; 7.79 GiB total capacity) ";
  EXPECT_EQ(scan_log(one + two).messages.size(), 2u);
  const std::string filler(1'000'000, 'x');
  const LogReport report = scan_log(filler + " " + one + filler + two + "\n" + one);
  ASSERT_EQ(report.messages.size(), 2u);
  EXPECT_EQ(report.messages[0].repeats, 2);
  EXPECT_EQ(report.messages[1].device_index, 1);
  EXPECT_EQ(report.lines, 2);
  EXPECT_LE(report.messages[0].text.size(), 4096u);
  // at every offset around the point where a long line is split into parts
  for (size_t offset = 64 * 1024 - 200; offset < 64 * 1024 + 100; offset += 7) {
    const LogReport cut = scan_log(std::string(offset, '.') + " " + one + std::string(70'000, '.'));
    ASSERT_EQ(cut.messages.size(), 1u) << offset;
    EXPECT_EQ(cut.messages[0].repeats, 1) << offset;
    EXPECT_EQ(cut.messages[0].capacity_bytes, gib(7.79)) << offset;
  }
}

TEST(Variants, ProgressBarsPrefixesAndQuotedText) {
  const char* body =
      "CUDA out of memory. Tried to allocate 1,5 GiB (GPU 0; 23.65 GiB total capacity; 6.64 GiB already allocated)";
  for (const std::string& log :
       {std::string("  1%|     | 1/100\r  2%|     | 2/100\r") + body,
        std::string("2024-05-01T12:00:00.123Z stderr F ") + body, std::string("3: [rank3]: ") + body,
        std::string("[1,3]<stderr>:") + body,
        std::string("{\"log\":\"RuntimeError: ") + body + "\\n\",\"stream\":\"stderr\"}",
        std::string("(EngineCore_DP0 pid=12) ERROR 05-01 12:00:00 [core.py:1] ") + body,
        std::string("May  1 12:00:00 host train[12]: ") + body, std::string("worker-1  | ") + body,
        std::string("\x1b[1;31mRuntime\x1b[0mError: \x1b[31m") + body + "\x1b[0m", std::string("^[[31m") + body}) {
    const LogReport report = scan_log(log);
    ASSERT_EQ(report.messages.size(), 1u) << log;
    EXPECT_EQ(report.messages[0].requested_bytes, gib(1.5)) << log;
    EXPECT_EQ(report.messages[0].allocated_bytes, gib(6.64)) << log;
    EXPECT_EQ(report.messages[0].text.find('\x1b'), std::string::npos);
  }
  EXPECT_EQ(scan_log(std::string("3: ") + body).messages[0].rank, 3);
  EXPECT_EQ(scan_log(std::string("[1,7]<stderr>:") + body).messages[0].rank, 7);
  EXPECT_FALSE(scan_log(body).messages[0].rank);
}

TEST(Variants, KernelReportIsOneMessage) {
  std::string log = "[100.1] python invoked oom-killer: gfp_mask=0xcc0, order=0, oom_score_adj=0\n";
  log += "[100.2] memory: usage 8388608kB, limit 8388608kB, failcnt 123\n";
  for (int i = 0; i < 150; ++i) log += "[100.3] [  1234]     0  1234   100   100   1000   0   0 bash\n";
  log += "[100.4] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task=python,pid=77,uid=0\n";
  log +=
      "[100.5] Memory cgroup out of memory: Killed process 77 (python) total-vm:90000kB, anon-rss:8000kB, "
      "file-rss:8kB, "
      "shmem-rss:0kB, UID:0\n[100.6] oom_reaper: reaped process 77 (python), now anon-rss:0kB\n";
  const LogReport report = scan_log(log);
  ASSERT_EQ(report.messages.size(), 1u);
  const Message& m = report.messages[0];
  EXPECT_EQ(m.process_bytes, 8008 * kKi);
  EXPECT_EQ(m.capacity_bytes, 8388608 * kKi);
  EXPECT_EQ(m.pid, 77);
  EXPECT_EQ(m.phase, "host_ram");
}

TEST(Variants, HostileBytes) {
  std::string bytes;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i * 37 + round);
    bytes += "CUDA out of memory. Tried to allocate 99999999999999999999999999.99 GiB (GPU 99999999999; 1e9 GiB ";
  }
  const LogReport report = scan_log(bytes);
  for (const Message& m : report.messages) {
    EXPECT_FALSE(m.requested_bytes);
    EXPECT_FALSE(m.device_index);
  }
  EXPECT_NO_THROW(scan_log("OOM when allocating tensor with shape[999999999999,999999999999,99999999] and type float"));
  EXPECT_NO_THROW(scan_log("{\"log\":\"\\u12"));
  EXPECT_NO_THROW(scan_log("\x1b[\x1b]"));
}

}  // namespace
}  // namespace headroom::doctor
