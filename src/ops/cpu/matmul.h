// Matrix products for linear layers and the loss: one interface, six implementations (AMX, AMX with 8-bit codes,
// oneDNN, Highway, Highway with 8-bit codes, plain loops). Only those with 8-bit codes and the last multiply codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ir/op.h"
#include "ops/cpu/matmul_scratch.h"

namespace headroom {

struct MatmulArguments {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const float* bias = nullptr;
  const void* addend = nullptr;
  std::byte* scratch = nullptr;  // scratch_bytes(), 64-byte aligned
  const void* p = nullptr;
  const void* q = nullptr;
};

// A prepared product. Repeated runs give the same bits.
class Matmul {
 public:
  virtual ~Matmul() = default;
  virtual int64_t scratch_bytes() const = 0;
  // Runs on the thread team of base/threads.h. One run at a time per object.
  virtual void run(const MatmulArguments& arguments) const = 0;
};

// A product, or the reason why the implementation refuses it.
struct MatmulOffer {
  std::unique_ptr<Matmul> matmul;
  std::string refusal;
};

// Prepares a product that needs no more than `booked` bytes of scratch.
using MatmulMaker = MatmulOffer (*)(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked);

// Our AMX kernels: bf16, and f32 in bf16 parts.
MatmulOffer make_amx_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked);
// oneDNN's matmul: f32 and bf16, from AVX-512 up.
MatmulOffer make_onednn_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked);
// Highway, f32 inside; narrow operands are converted tile by tile. From AVX2 up.
MatmulOffer make_simd_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked);
// AMX, for Multiply::int8 alone.
MatmulOffer make_amx_int8_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked);
// AVX-512 VNNI, for Multiply::int8 alone.
MatmulOffer make_vnni_int8_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked);
// Highway, for Multiply::int8 alone. From AVX2 up.
MatmulOffer make_int8_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked);
// Plain loops, on any machine.
MatmulOffer make_reference_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked);

}  // namespace headroom
