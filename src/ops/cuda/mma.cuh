// Products of small matrices by a warp on tensor cores: bf16 operands and f32 sums, from sm_80 on, and the moves that
// feed them. Fragments have the layouts of PTX's mma.m16n8k16 and ldmatrix (PTX ISA, "Matrix fragments for mma.m16n8k16
// with floating point type", "ldmatrix"). For a C++ compiler the same is done by exchange through shared memory, so
// that it runs the same index computations.
//
// Lane l has g = l / 4 and t = l % 4. A [16][16]: a0 = (g, 2t), a1 = (g + 8, 2t), a2 = (g, 2t + 8), a3 = (g + 8, 2t +
// 8), each with two elements along the row, the first in the low half. B [16 steps][8]: b0 = (2t, g), b1 = (2t + 8, g),
// with two along the steps. C [16][8]: c0, c1 = (g, 2t), (g, 2t + 1); c2, c3 = (g + 8, 2t), (g + 8, 2t + 1).
#pragma once

#include "ops/cuda/elements.cuh"

// Defined if the functions here do something in this compilation. In other compilations kernels that use them trap:
// those run only when a newer device compiles an older one's PTX.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define HR_HAS_MMA 1
#endif

namespace headroom::cuda {

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

// PTX that older architectures do not have.
#ifdef HR_HAS_MMA
#define HR_PTX(...) __VA_ARGS__
#else
#define HR_PTX(...)
#endif

HR_DEVICE uint32_t shared_address(const void* at) { return static_cast<uint32_t>(__cvta_generic_to_shared(at)); }

// c += a b
HR_DEVICE void mma_m16n8k16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  HR_PTX(asm volatile(
             "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
             : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));)
}
// Loads four 8 x 8 matrices from shared memory: lane l passes the address of row l % 8 of matrix l / 8 (16-byte
// aligned); register m gets elements (g, 2t) and (g, 2t + 1) of matrix m.
HR_DEVICE void load_matrices(uint32_t (&m)[4], const Bf16* row) {
  HR_PTX(asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                      : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                      : "r"(shared_address(row))
                      : "memory");)
}
// The same with each matrix transposed: elements (2t, g) and (2t + 1, g).
HR_DEVICE void load_matrices_transposed(uint32_t (&m)[4], const Bf16* row) {
  HR_PTX(asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                      : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                      : "r"(shared_address(row))
                      : "memory");)
}
// Starts a copy of 16 bytes from global to shared memory; without `there` it writes zeros and does not read `global`.
// Copies are counted in groups.
HR_DEVICE void begin_copy(void* shared, const void* global, bool there) {
  HR_PTX(asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
                      "r"(there ? 16 : 0)
                      : "memory");)
}
HR_DEVICE void begin_copy_of_float(float* shared, const float* global, bool there) {
  HR_PTX(asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(shared)), "l"(global),
                      "r"(there ? 4 : 0)
                      : "memory");)
}
HR_DEVICE void end_copy_group() { HR_PTX(asm volatile("cp.async.commit_group;" ::: "memory");) }
// Waits until at most N of this thread's groups are in progress.
template <int N>
HR_DEVICE void await_copies() {
  HR_PTX(asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");)
}

#else

inline float bf16_half(uint32_t pair, int half) { return widen(Bf16{static_cast<uint16_t>(pair >> (16 * half))}); }

// Values of each warp's lanes during an exchange.
struct WarpSlots {
  uint32_t a[kWarp][4];
  uint32_t b[kWarp][2];
  const Bf16* row[kWarp];
};
HR_DEVICE WarpSlots& warp_slots() {
  __shared__ WarpSlots slots[32];
  return slots[threadIdx.x / kWarp];
}

HR_DEVICE void mma_m16n8k16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  WarpSlots& slots = warp_slots();
  const int lane = static_cast<int>(threadIdx.x) % kWarp, g = lane / 4, t = lane % 4;
  for (int i = 0; i < 4; ++i) slots.a[lane][i] = a[i];
  slots.b[lane][0] = b0;
  slots.b[lane][1] = b1;
  __syncwarp();
  for (int i = 0; i < 4; ++i) {
    const int lower = i / 2, column = 2 * t + i % 2;  // in C: row g + 8 lower
    for (int step = 0; step < 16; ++step) {
      const int upper = step / 8, pair = step % 8 / 2, half = step % 2;
      c[i] += bf16_half(slots.a[4 * g + pair][lower + 2 * upper], half) *
              bf16_half(slots.b[4 * column + pair][upper], half);
    }
  }
  __syncwarp();
}

HR_DEVICE void load_matrices(uint32_t (&m)[4], const Bf16* row) {
  WarpSlots& slots = warp_slots();
  const int lane = static_cast<int>(threadIdx.x) % kWarp, g = lane / 4, t = lane % 4;
  cuda_shim::check_shared(row, 16);
  slots.row[lane] = row;
  __syncwarp();
  for (int i = 0; i < 4; ++i) {
    const Bf16* const from = slots.row[8 * i + g] + 2 * t;
    m[i] = from[0].bits | static_cast<uint32_t>(from[1].bits) << 16;
  }
  __syncwarp();
}
HR_DEVICE void load_matrices_transposed(uint32_t (&m)[4], const Bf16* row) {
  WarpSlots& slots = warp_slots();
  const int lane = static_cast<int>(threadIdx.x) % kWarp, g = lane / 4, t = lane % 4;
  cuda_shim::check_shared(row, 16);
  slots.row[lane] = row;
  __syncwarp();
  for (int i = 0; i < 4; ++i)
    m[i] = slots.row[8 * i + 2 * t][g].bits | static_cast<uint32_t>(slots.row[8 * i + 2 * t + 1][g].bits) << 16;
  __syncwarp();
}

HR_DEVICE void begin_copy(void* shared, const void* global, bool there) {
  cuda_shim::begin_copy(shared, global, 16, there);
}
HR_DEVICE void begin_copy_of_float(float* shared, const float* global, bool there) {
  cuda_shim::begin_copy(shared, global, 4, there);
}
HR_DEVICE void end_copy_group() { cuda_shim::end_copy_group(); }
template <int N>
HR_DEVICE void await_copies() {
  cuda_shim::await_copies(N);
}

#endif

}  // namespace headroom::cuda
