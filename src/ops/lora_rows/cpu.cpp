// CPU kernels of lora_rows.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/threads.h"
#include "ops/lora_rows/shape.h"
#include "ops/lora_rows/simd.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

// The slot that each row uses, if any.
class RowSlots {
 public:
  RowSlots(const KernelCall& call, int64_t slots)
      : slots_(slots), of_(call.inputs[LoraRowsInputs::slots].as<int32_t>()) {}
  bool used(int64_t row) const { return of_[row] >= 0 && of_[row] < slots_; }
  int64_t of(int64_t row) const { return of_[row]; }

 private:
  int64_t slots_;
  const int32_t* of_;
};

const std::byte* element(const TensorView& view, int64_t index) {
  return view.as<std::byte>() + index * dtype_bytes(view.dtype);
}

void narrow_rows(const LoraRowsShape& shape, const KernelCall& call, float* t) {
  const RowSlots slots(call, shape.slots);
  const TensorView &x = call.inputs[LoraRowsInputs::x], &a = call.inputs[LoraRowsInputs::a];
  const float* const scales = call.inputs[LoraRowsInputs::scales].as<float>();
  parallel_for(shape.rows * shape.rank, std::max<int64_t>(1, 16384 / shape.ins), [&](int64_t begin, int64_t end, int) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t row = index / shape.rank, k = index % shape.rank;
      if (!slots.used(row)) continue;
      const int64_t slot = slots.of(row);
      t[index] = scales[slot] * lora_down(element(x, row * shape.ins), x.dtype,
                                          element(a, (slot * shape.rank + k) * shape.ins), a.dtype, shape.ins);
    }
  });
}

void widen_rows(const LoraRowsShape& shape, const KernelCall& call, const float* t) {
  const RowSlots slots(call, shape.slots);
  const TensorView &b = call.inputs[LoraRowsInputs::b], &y = call.inputs[LoraRowsInputs::y], &to = call.outputs[0];
  const int64_t pieces = (shape.outs + kLoraOuts - 1) / kLoraOuts;
  parallel_for(shape.rows * pieces, std::max<int64_t>(1, 32 / shape.rank), [&](int64_t begin, int64_t end, int) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t row = index / pieces, first = index % pieces * kLoraOuts;
      const int64_t count = std::min(kLoraOuts, shape.outs - first), at = row * shape.outs + first;
      auto* const into = const_cast<std::byte*>(element(to, at));
      if (slots.used(row))
        lora_up(t + row * shape.rank, shape.rank, element(b, slots.of(row) * shape.rank * shape.outs + first), b.dtype,
                shape.outs, element(y, at), into, y.dtype, count);
      else if (to.data != y.data)
        std::memcpy(into, element(y, at), static_cast<size_t>(count * dtype_bytes(y.dtype)));
    }
  });
}

std::unique_ptr<CpuKernel> lora_rows_simd(const KernelSpec& spec) {
  return kernel_of([shape = lora_rows_shape(spec.call())](const KernelCall& call) {
    auto* const t = reinterpret_cast<float*>(call.scratch.data());
    narrow_rows(shape, call, t);
    widen_rows(shape, call, t);
  });
}

double row_product(const LoraRowsShape& shape, const KernelCall& call, int64_t row, int64_t slot, int64_t k) {
  double sum = 0;
  for (int64_t i = 0; i < shape.ins; ++i)
    sum += read_element(call.inputs[LoraRowsInputs::x], row * shape.ins + i) *
           read_element(call.inputs[LoraRowsInputs::a], (slot * shape.rank + k) * shape.ins + i);
  return sum * read_element(call.inputs[LoraRowsInputs::scales], slot);
}

std::unique_ptr<CpuKernel> lora_rows_reference(const KernelSpec& spec) {
  return kernel_of([shape = lora_rows_shape(spec.call())](const KernelCall& call) {
    const RowSlots slots(call, shape.slots);
    auto* const t = reinterpret_cast<float*>(call.scratch.data());
    for (int64_t row = 0; row < shape.rows; ++row) {
      const int64_t slot = slots.used(row) ? slots.of(row) : -1;
      for (int64_t k = 0; slot >= 0 && k < shape.rank; ++k)
        t[k] = static_cast<float>(row_product(shape, call, row, slot, k));
      for (int64_t o = 0; o < shape.outs; ++o) {
        double sum = read_element(call.inputs[LoraRowsInputs::y], row * shape.outs + o);
        for (int64_t k = 0; slot >= 0 && k < shape.rank; ++k)
          sum += static_cast<double>(t[k]) *
                 read_element(call.inputs[LoraRowsInputs::b], (slot * shape.rank + k) * shape.outs + o);
        write_element(call.outputs[0], row * shape.outs + o, sum);
      }
    }
  });
}

}  // namespace

void register_lora_rows_cpu(CpuKernels& kernels) {
  kernels.add("lora_rows", simd_and_reference<lora_rows_simd, lora_rows_reference>());
}

}  // namespace headroom
