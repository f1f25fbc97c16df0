// Softmax, loss and gradient over rows of logits, with one block per row. The block reads the row once for the loss and
// again for the gradient, unless registers hold it.
#include "ops/linear_cross_entropy/cuda_kernels.h"

#include "ops/cuda/launch.cuh"
#include "ops/cuda/reduce.cuh"

namespace headroom::cuda {

constexpr int kLossThreads = 512;      // of a block, at most
constexpr int kShortRowThreads = 128;  // for vocabularies below kShortRow
constexpr int kShortRow = 8192;
constexpr int kNoTarget = -100;

HR_DEVICE int target_at(const DeviceTargets& targets, int64_t row) {
  if (!targets.shift) return targets.labels[row];
  return row % targets.sequence == targets.sequence - 1 ? kNoTarget : targets.labels[row + 1];
}

HR_DEVICE float minus_infinity() { return __uint_as_float(0xff800000u); }

// A logit after capping.
struct LogitCap {
  float cap, inverse;
  HR_DEVICE explicit LogitCap(float c) : cap(c), inverse(c > 0 ? 1.0f / c : 0.0f) {}
  HR_DEVICE float operator()(float logit) const { return cap > 0 ? cap * tanhf(logit * inverse) : logit; }
  // The derivative of the cap, given its result `capped`.
  HR_DEVICE float slope(float capped) const {
    const float part = capped * inverse;
    return 1.0f - part * part;
  }
};

// The largest logit so far and the sum of exp(logit - largest). A logit that is not finite makes the sum NaN.
struct RunningSoftmax {
  float largest = minus_infinity();
  float sum = 0;

  template <int N>
  HR_DEVICE void add(const float (&logits)[N]) {
    float most = logits[0];
    HR_UNROLL
    for (int i = 1; i < N; ++i) most = most > logits[i] ? most : logits[i];
    if (most > largest) {
      sum *= expf(largest - most);
      largest = most;
    }
    HR_UNROLL
    for (int i = 0; i < N; ++i) sum += expf(logits[i] - largest) + logits[i] * 0.0f;
  }
};

constexpr int kAhead = 4;              // 16-byte accesses that a thread has in flight
constexpr int kHoldingThreads = 1024;  // per block that holds a row of narrow logits
static_assert(kAhead * kPack<Bf16> * kHoldingThreads == kHeldLogits, "one round of a block");

// The packs that a thread reads from a row in one iteration, a block's width apart.
template <typename L>
struct LogitRound {
  static constexpr int N = kPack<L>;
  // Packs added at once. All of an iteration for fp32 logits; one for narrow ones, which needs fewer registers.
  static constexpr int kAdded = sizeof(L) == 4 ? kAhead : 1;
  Pack<L, N> packs[kAhead];

  // Whether an iteration that starts at this pack is complete.
  HR_DEVICE static bool fits(int64_t pack, int64_t packs) { return pack + (kAhead - 1) * int64_t{blockDim.x} < packs; }
  HR_DEVICE static int64_t step() { return kAhead * int64_t{blockDim.x}; }
  HR_DEVICE void load(const L* row, int64_t pack) {
    HR_UNROLL
    for (int i = 0; i < kAhead; ++i)
      packs[i] = reinterpret_cast<const Pack<L, N>*>(row)[pack + i * int64_t{blockDim.x}];
  }
  HR_DEVICE void add_to(RunningSoftmax& found, const LogitCap& cap) const {
    HR_UNROLL
    for (int first = 0; first < kAhead; first += kAdded) {
      float capped[kAdded * N];
      HR_UNROLL
      for (int i = 0; i < kAdded * N; ++i) capped[i] = cap(widen(packs[first + i / N].at[i % N]));
      found.add(capped);
    }
  }
};

// The running softmax of this thread's elements of the row. With `kHolds` the first iteration stays in `held`.
template <bool kHolds, typename L>
HR_DEVICE RunningSoftmax read_row(const L* row, int64_t vocabulary, const LogitCap& cap, LogitRound<L>& held) {
  using Round = LogitRound<L>;
  RunningSoftmax found;
  const int64_t packs = vocabulary / Round::N;
  int64_t pack = threadIdx.x;
  if (kHolds && Round::fits(pack, packs)) {
    held.load(row, pack);
    held.add_to(found, cap);
    pack += Round::step();
  }
  for (; Round::fits(pack, packs); pack += Round::step()) {
    Round passing;
    passing.load(row, pack);
    passing.add_to(found, cap);
  }
  for (; pack < packs; pack += blockDim.x) {
    const Pack<L, Round::N> last = reinterpret_cast<const Pack<L, Round::N>*>(row)[pack];
    float capped[Round::N];
    HR_UNROLL
    for (int i = 0; i < Round::N; ++i) capped[i] = cap(widen(last.at[i]));
    found.add(capped);
  }
  const int64_t last = packs * Round::N + threadIdx.x;
  if (last < vocabulary) {
    const float capped[1] = {cap(widen(row[last]))};
    found.add(capped);
  }
  return found;
}

// The inputs of a row's gradient.
struct LossSlope {
  float largest;
  float factor;     // scale / sum
  float at_target;  // scale (softmax - 1)
  int target;
};

// The gradient with respect to the logit at a position.
template <typename T>
HR_DEVICE T gradient_at(int64_t position, float logit, const LogitCap& cap, const LossSlope& slope) {
  const float capped = cap(logit);
  float value = position == slope.target ? slope.at_target : expf(capped - slope.largest) * slope.factor;
  if (cap.cap > 0) value *= cap.slope(capped);
  return narrow<T>(value);
}

// Writes the gradient over the start of the row. A narrow gradient overwrites logits of other threads, so a barrier
// separates an iteration's reads from its writes, which end before the next iteration's reads start.
template <typename T>
HR_DEVICE void write_narrower(float* row, int64_t vocabulary, const LogitCap& cap, const LossSlope& slope) {
  constexpr int N = kPack<T>;
  const int threads = static_cast<int>(blockDim.x);
  T* const to = reinterpret_cast<T*>(row);
  for (int64_t base = 0; base < vocabulary; base += threads * N) {
    const int64_t first = base + static_cast<int64_t>(threadIdx.x) * N;
    Pack<float, 4> held[N / 4];
    if (first < vocabulary) {
      HR_UNROLL
      for (int i = 0; i < N / 4; ++i) held[i] = *reinterpret_cast<const Pack<float, 4>*>(row + first + i * 4);
    }
    __syncthreads();
    if (first < vocabulary) {
      Pack<T, N> gradient;
      HR_UNROLL
      for (int i = 0; i < N; ++i) gradient.at[i] = gradient_at<T>(first + i, held[i / 4].at[i % 4], cap, slope);
      *reinterpret_cast<Pack<T, N>*>(to + first) = gradient;
    }
  }
}

// Writes each element over its logit. Those held in registers are not read again.
template <bool kHolds, typename L>
HR_DEVICE void write_in_place(L* row, int64_t vocabulary, const LogitCap& cap, const LossSlope& slope,
                              const LogitRound<L>& held) {
  using Round = LogitRound<L>;
  using RowPack = Pack<L, Round::N>;
  const auto write = [&](int64_t pack, const RowPack& logits) {
    RowPack gradient;
    HR_UNROLL
    for (int i = 0; i < Round::N; ++i)
      gradient.at[i] = gradient_at<L>(pack * Round::N + i, widen(logits.at[i]), cap, slope);
    reinterpret_cast<RowPack*>(row)[pack] = gradient;
  };
  int64_t pack = threadIdx.x;
  if (kHolds && Round::fits(pack, vocabulary / Round::N)) {
    HR_UNROLL
    for (int i = 0; i < kAhead; ++i) write(pack + i * int64_t{blockDim.x}, held.packs[i]);
    pack += Round::step();
  }
  for (; pack * Round::N < vocabulary; pack += blockDim.x) write(pack, reinterpret_cast<const RowPack*>(row)[pack]);
}

template <typename T>
HR_DEVICE void write_zeros(void* row, int64_t vocabulary) {
  constexpr int N = kPack<T>;
  const int threads = static_cast<int>(blockDim.x);
  Pack<T, N> zeros;
  HR_UNROLL
  for (int i = 0; i < N; ++i) zeros.at[i] = narrow<T>(0.0f);
  for (int64_t first = static_cast<int64_t>(threadIdx.x) * N; first < vocabulary; first += threads * N)
    *reinterpret_cast<Pack<T, N>*>(static_cast<T*>(row) + first) = zeros;
}

// Logits are L and their gradient is T. kHolds: registers hold as much of a row as they can.
template <typename L, typename T, bool kGradient, bool kHolds>
__global__ __launch_bounds__(kHolds ? kHoldingThreads : kLossThreads) void loss_of_rows(DeviceLoss p) {
  __shared__ float largest_slots[kWarp];
  __shared__ double sum_slots[kWarp];
  const int64_t at = p.first_row + blockIdx.x;
  L* const row = static_cast<L*>(p.logits) + blockIdx.x * p.stride;
  const int target = target_at(p.targets, at);
  if (target < 0 || target >= p.vocabulary) {
    if (threadIdx.x == 0) p.losses[at] = target == kNoTarget ? 0.0 : static_cast<double>(__uint_as_float(0x7fc00000u));
    if (threadIdx.x == 0 && p.hits) p.hits[at] = 0;
    if (kGradient) write_zeros<T>(row, p.vocabulary);
    return;
  }
  const LogitCap cap(p.softcap);
  const float chosen = cap(widen(row[target]));
  LogitRound<L> held;
  const RunningSoftmax found = read_row<kHolds>(row, p.vocabulary, cap, held);
  const float largest = reduce_block(found.largest, largest_slots, minus_infinity(), Max());
  const double sum =
      reduce_block(static_cast<double>(found.sum * expf(found.largest - largest)), sum_slots, 0.0, Sum());
  const double above = static_cast<double>(chosen) - static_cast<double>(largest);
  if (threadIdx.x == 0) p.losses[at] = log(sum) - above;
  if (threadIdx.x == 0 && p.hits) p.hits[at] = chosen >= largest ? 1 : 0;
  if (!kGradient) return;
  const float scale = *p.scale;
  const LossSlope slope{largest, scale * static_cast<float>(1.0 / sum),
                        scale * static_cast<float>(exp(above) / sum - 1.0), target};
  if constexpr (sizeof(L) == sizeof(T))
    write_in_place<kHolds>(row, p.vocabulary, cap, slope, held);
  else
    write_narrower<T>(row, p.vocabulary, cap, slope);
}

constexpr int kSumThreads = 256;

// One block: thread t adds rows t, t + 256, ...
__global__ __launch_bounds__(kSumThreads) void sum_losses(DeviceTargets targets, int64_t rows, const double* losses,
                                                          const double* hits, double* sums, bool overwrite) {
  __shared__ double slots[3][kWarp];
  double loss = 0, count = 0, hit = 0;
  for (int64_t row = threadIdx.x; row < rows; row += kSumThreads) {
    loss += losses[row];
    count += target_at(targets, row) == kNoTarget ? 0.0 : 1.0;
    if (hits) hit += hits[row];
  }
  loss = reduce_block(loss, slots[0], 0.0, Sum());
  count = reduce_block(count, slots[1], 0.0, Sum());
  hit = reduce_block(hit, slots[2], 0.0, Sum());
  if (threadIdx.x != 0) return;
  sums[0] = overwrite ? loss : sums[0] + loss;
  sums[1] = overwrite ? count : sums[1] + count;
  if (hits) sums[2] = overwrite ? hit : sums[2] + hit;
}

#ifdef __CUDACC_RTC__
template __global__ void loss_of_rows<float, float, false, false>(DeviceLoss);
template __global__ void loss_of_rows<float, float, true, false>(DeviceLoss);
template __global__ void loss_of_rows<float, Bf16, true, false>(DeviceLoss);
template __global__ void loss_of_rows<float, Half, true, false>(DeviceLoss);
template __global__ void loss_of_rows<Bf16, Bf16, true, false>(DeviceLoss);
template __global__ void loss_of_rows<Bf16, Bf16, true, true>(DeviceLoss);
#else
void launch_loss(const DeviceLoss& loss, FloatType logits, bool gradient, FloatType type, CudaStream stream) {
  Grid grid{loss.rows, 1, 1, loss.vocabulary < kShortRow ? kShortRowThreads : kLossThreads, 0};
  const bool narrow = gradient && logits == FloatType::bf16;
  const bool holds = narrow && loss.vocabulary >= kShortRow && loss.vocabulary <= kHeldLogits;
  if (holds) grid.block = kHoldingThreads;
  if (!gradient)
    launch(loss_of_rows<float, float, false, false>, grid, stream, loss);
  else if (narrow)
    launch(holds ? loss_of_rows<Bf16, Bf16, true, true> : loss_of_rows<Bf16, Bf16, true, false>, grid, stream, loss);
  else
    with_float_type(type,
                    [&](auto zero) { launch(loss_of_rows<float, decltype(zero), true, false>, grid, stream, loss); });
}

void launch_loss_sums(const DeviceTargets& targets, int64_t rows, const double* losses, const double* hits,
                      double* sums, bool overwrite, CudaStream stream) {
  launch(sum_losses, Grid{1, 1, 1, kSumThreads, 0}, stream, targets, rows, losses, hits, sums, overwrite);
}
#endif

}  // namespace headroom::cuda
