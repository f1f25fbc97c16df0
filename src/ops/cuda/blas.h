// Matrix products by a library of the device: prepared once, then queued without an allocation.
#pragma once

#include <cstdint>
#include <string>

#include "ops/cpu/matmul_scratch.h"
#include "ops/cuda/fp8.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/library_offer.h"

namespace headroom {

// C = A B [+ bias] [+ addend] of MatmulSpec, on the device. The addend has the row stride of C.
struct CudaProductSpec {
  MatmulSpec matmul;
  int64_t a_stride = 0;     // elements from a stored row of A to the next; 0: dense
  int64_t b_stride = 0;     // the same for B
  int64_t c_stride = 0;     // the same for C
  int64_t alignment = 256;  // of every operand's address, in bytes: a power of two
  // Formats if A and B are fp8 codes instead of matmul.operand; none: they are not. Both or neither; A is not
  // transposed, B is, and each is multiplied by its scale.
  Fp8Format a_format = Fp8Format::none;
  Fp8Format b_format = Fp8Format::none;

  // Elements from one stored row to the next.
  int64_t a_step() const {
    return a_stride > 0 ? a_stride : matmul.a_transposed ? matmul.size.rows : matmul.size.depth;
  }
  int64_t b_step() const {
    return b_stride > 0 ? b_stride : matmul.b_transposed ? matmul.size.depth : matmul.size.cols;
  }
  int64_t c_step() const { return c_stride > 0 ? c_stride : matmul.size.cols; }
};

// Device memory. `addend` may be `c`; it and `bias` are read only if the spec has them.
struct CudaProductArguments {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;  // [cols]
  const void* addend = nullptr;
  void* workspace = nullptr;  // workspace_bytes(), aligned to 256 bytes
  // For codes: one f32 each.
  const float* a_scale = nullptr;
  const float* b_scale = nullptr;
};

// A prepared product. Repeated runs on the same device give the same bits.
class CudaProduct {
 public:
  virtual ~CudaProduct() = default;
  virtual int64_t workspace_bytes() const = 0;
  // Queues the product on `stream`; does nothing in LaunchMode::load, because its code is loaded already. Thread-safe.
  // Throws Error(run) when the library or the driver refuses what it accepted in the rehearsal.
  virtual void run(const CudaProductArguments& arguments, CudaStream stream) const = 0;
};

// A product, or why the implementation refuses it.
using CudaProductOffer = CudaLibraryOffer<CudaProduct>;

// The library of matrix products. The bias has the dtype of the result.
class CudaBlas {
 public:
  virtual ~CudaBlas() = default;
  // Prepares a product that needs at most `workspace` bytes and sums in a fixed order, and rehearses it, which loads
  // its code (ops/cuda/rehearsal.h). The same spec and workspace give the same product. Refuses when the library has no
  // algorithm, and when the library or the driver fails. Thread-safe.
  virtual CudaProductOffer prepare(const CudaProductSpec& spec, int64_t workspace) = 0;
  // Failures so far, as a sentence for the user; empty when there were none. Thread-safe.
  virtual std::string remark() const { return {}; }
  // Name and version, for messages.
  virtual std::string name() const = 0;
};

}  // namespace headroom
