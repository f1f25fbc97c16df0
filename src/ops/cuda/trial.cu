#include "ops/cuda/trial.h"

#include "ops/cuda/launch.cuh"

#if defined(__CUDACC__) && !defined(__CUDACC_RTC__)
#include <algorithm>
#include <array>
#endif

namespace headroom::cuda {

#ifdef __CUDACC__  // the shim does not try anything
// A 32-bit mix of an index (Wellons' lowbias32).
HR_DEVICE uint32_t mixed(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

// 16-bit halves: a sign, an upper exponent of 0x3b to 0x42 (2^-10 to 2^6 as bf16 or f32), and a low byte without bit 3,
// which would make fp8 codes NaN.
__global__ void fill_for_trial(uint32_t* at, int64_t words) {
  for (int64_t i = first_index(); i < words; i += index_stride()) {
    const uint32_t random = mixed(static_cast<uint32_t>(i));
    const uint32_t upper = (random & 0x00070007u) + 0x003b003bu, sign = random >> 8 & 0x00800080u;
    at[i] = (upper | sign) << 8 | (random >> 3 & 0x00f700f7u);
  }
}

__global__ void sum_bits(const uint32_t* at, int64_t words, unsigned long long* sum) {
  unsigned long long own = 0;
  for (int64_t i = first_index(); i < words; i += index_stride())
    own += (static_cast<unsigned long long>(at[i]) + 1) * (2 * static_cast<unsigned long long>(i) + 1);
  atomicAdd(sum, own);
}
#endif

#if defined(__CUDACC__) && !defined(__CUDACC_RTC__)
namespace {

constexpr int64_t kSumBytes = 256;
constexpr int kTrialBlocks = 1024, kTrialThreads = 256, kTimings = 5;

// Destroyed on every path.
struct Clock {
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;

  Clock() {
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
    check_cuda(cudaEventCreate(&begin), "making an event");
    check_cuda(cudaEventCreate(&end), "making an event");
  }
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  ~Clock() {
    if (end) cudaEventDestroy(end);
    if (begin) cudaEventDestroy(begin);
    if (stream) cudaStreamDestroy(stream);
  }
};

double milliseconds_of(const Clock& clock, void (*queue)(const void*, CudaStream), const void* context) {
  check_cuda(cudaEventRecord(clock.begin, clock.stream), "a trial");
  queue(context, clock.stream);
  check_cuda(cudaEventRecord(clock.end, clock.stream), "a trial");
  check_cuda(cudaEventSynchronize(clock.end), "a trial");
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, clock.begin, clock.end), "a trial");
  return milliseconds;
}

void fill(void* at, int64_t bytes, cudaStream_t stream) {
  fill_for_trial<<<kTrialBlocks, kTrialThreads, 0, stream>>>(static_cast<uint32_t*>(at), bytes / 4);
  check_cuda(cudaGetLastError(), "filling operands for a trial");
}

}  // namespace

TrialMemory::TrialMemory(int64_t bytes) : bytes_((bytes + kSumBytes - 1) / kSumBytes * kSumBytes) {
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess || free < static_cast<size_t>(bytes_ + kSumBytes)) return;
  if (cudaMalloc(&at_, static_cast<size_t>(bytes_ + kSumBytes)) != cudaSuccess) {
    at_ = nullptr;
    cudaGetLastError();  // the caller continues without memory and must not find an error
    return;
  }
  const Clock clock;
  fill(at_, bytes_, clock.stream);
  check_cuda(cudaStreamSynchronize(clock.stream), "filling operands for a trial");
}
TrialMemory::~TrialMemory() { cudaFree(at_); }

Trial TrialMemory::of(void (*queue)(const void* context, CudaStream stream), const void* context, int64_t result,
                      int64_t result_bytes) const {
  const Clock clock;
  auto* const base = static_cast<unsigned char*>(at_);
  unsigned char* const sum = base + bytes_;
  fill(base + result, result_bytes, clock.stream);
  check_cuda(cudaMemsetAsync(sum, 0, kSumBytes, clock.stream), "a trial");
  queue(context, clock.stream);
  sum_bits<<<kTrialBlocks, kTrialThreads, 0, clock.stream>>>(
      reinterpret_cast<const uint32_t*>(base + result), result_bytes / 4, reinterpret_cast<unsigned long long*>(sum));
  Trial trial;
  check_cuda(cudaMemcpyAsync(&trial.bits, sum, sizeof trial.bits, cudaMemcpyDeviceToHost, clock.stream), "a trial");
  check_cuda(cudaStreamSynchronize(clock.stream), "a trial");
  std::array<double, kTimings> timings;
  for (double& timing : timings) timing = milliseconds_of(clock, queue, context);
  std::sort(timings.begin(), timings.end());
  trial.seconds = timings[kTimings / 2] / 1e3;
  return trial;
}
#elif !defined(__CUDACC_RTC__)
TrialMemory::TrialMemory(int64_t bytes) : bytes_(bytes) {}
TrialMemory::~TrialMemory() = default;
Trial TrialMemory::of(void (*)(const void* context, CudaStream stream), const void*, int64_t, int64_t) const {
  return {};
}
#endif

#ifndef __CUDACC_RTC__
int64_t fastest_alike(const Trial* trials, int64_t count) {
  constexpr double kWorthwhile = 0.98;
  int64_t best = 0;
  for (int64_t i = 1; i < count; ++i)
    if (trials[i].bits == trials[0].bits && trials[i].seconds < (best == 0 ? kWorthwhile : 1) * trials[best].seconds)
      best = i;
  return best;
}
#endif

}  // namespace headroom::cuda
