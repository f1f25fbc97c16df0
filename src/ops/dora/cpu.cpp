// CPU kernels of row_lengths, magnitude and magnitude_grad.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/threads.h"
#include "ops/cpu/coded_matrix.h"
#include "ops/dora/scratch.h"
#include "ops/dora/simd.h"
#include "ops/stream/partial_sums.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

const std::byte* row_of(const TensorView& matrix, int64_t row, int64_t width) {
  return matrix.as<std::byte>() + row * width * dtype_bytes(matrix.dtype);
}

// The attributes and types of a row_lengths node.
struct LengthsPlan {
  RowLengthsShape shape;
  Storage storage;
  float factor = 1;
  int64_t threads = 1;  // for which there is scratch

  LengthsPlan(const KernelSpec& spec, const DeviceFacts& facts)
      : shape(row_lengths_shape(spec.call())),
        storage(spec.inputs[RowLengthsInputs::weight].storage),
        factor(static_cast<float>(spec.attrs.real("factor"))),
        threads(facts.threads) {}
};

// Rows begin .. end; `decoded` holds kLengthRows rows of a weight in codes.
void run_lengths(const LengthsPlan& plan, const KernelCall& call, int64_t begin, int64_t end, float* decoded) {
  const TensorView &weight = call.inputs[RowLengthsInputs::weight], &a = call.inputs[RowLengthsInputs::a],
                   &b = call.inputs[RowLengthsInputs::b];
  const int64_t ins = plan.shape.ins, rank = plan.shape.rank;
  const auto rows_from = [&](const void* from, int64_t row, int64_t count) {
    return LengthRows{
        from,         a.data, row_of(b, row, rank), call.outputs[0].as<float>() + row, count, ins, rank, plan.factor,
        weight.dtype, a.dtype};
  };
  if (plan.storage.dense()) return lengths_of_rows(rows_from(row_of(weight, begin, ins), begin, end - begin));
  const CodedMatrix codes(weight.data, plan.storage, plan.shape.outs * ins);
  for (int64_t row = begin; row < end; row += kLengthRows) {
    const int64_t count = std::min(kLengthRows, end - row);
    codes.read(row * ins, count * ins, decoded);
    lengths_of_rows(rows_from(decoded, row, count));
  }
}

KernelOffer make_lengths_simd(const KernelSpec& spec, const DeviceFacts& facts) {
  std::string refusal = simd_refusal(facts);
  if (!refusal.empty()) return {nullptr, std::move(refusal)};
  return {kernel_of([plan = LengthsPlan(spec, facts)](const KernelCall& call) {
            HR_CHECK(threads() <= plan.threads, "scratch for {} threads, a team of {}", plan.threads, threads());
            const int64_t each = decoded_lengths_bytes(plan.shape);
            const int64_t groups = (plan.shape.outs + kLengthRows - 1) / kLengthRows;
            parallel_for(groups, 4, [&](int64_t begin, int64_t end, int thread) {
              auto* const decoded = reinterpret_cast<float*>(call.scratch.data() + thread * each);
              run_lengths(plan, call, begin * kLengthRows, std::min(end * kLengthRows, plan.shape.outs), decoded);
            });
          }),
          {}};
}

// One row at a time, in double precision.
void reference_length(const LengthsPlan& plan, const KernelCall& call, int64_t row, float* decoded) {
  const TensorView& weight = call.inputs[RowLengthsInputs::weight];
  const int64_t ins = plan.shape.ins, rank = plan.shape.rank;
  if (!plan.storage.dense())
    CodedMatrix(weight.data, plan.storage, plan.shape.outs * ins).read(row * ins, ins, decoded);
  double squares = 0;
  for (int64_t i = 0; i < ins; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < rank; ++k)
      sum += read_element(call.inputs[RowLengthsInputs::b], row * rank + k) *
             read_element(call.inputs[RowLengthsInputs::a], k * ins + i);
    const double base = plan.storage.dense() ? read_element(weight, row * ins + i) : static_cast<double>(decoded[i]);
    const double value = base + static_cast<double>(plan.factor) * sum;
    squares += value * value;
  }
  write_element(call.outputs[0], row, std::sqrt(squares));
}

KernelOffer make_lengths_reference(const KernelSpec& spec, const DeviceFacts& facts) {
  return {kernel_of([plan = LengthsPlan(spec, facts)](const KernelCall& call) {
            auto* const decoded = reinterpret_cast<float*>(call.scratch.data());
            for (int64_t row = 0; row < plan.shape.outs; ++row) reference_length(plan, call, row, decoded);
          }),
          {}};
}

std::unique_ptr<CpuKernel> magnitude_simd(const KernelSpec& spec) {
  return kernel_of([at = MagnitudeInputs(spec.attrs)](const KernelCall& call) {
    const TensorView &z = call.inputs[MagnitudeInputs::z], &y = call.outputs[0];
    const MagnitudeRows args{z.data,
                             call.inputs[MagnitudeInputs::magnitude].as<float>(),
                             call.inputs[MagnitudeInputs::lengths].as<float>(),
                             at.bias != 0 ? call.inputs[at.bias].as<float>() : nullptr,
                             at.residual != 0 ? call.inputs[at.residual].data : nullptr,
                             y.data,
                             z.dims.back(),
                             z.dtype,
                             y.dtype};
    parallel_for(z.count() / args.width, 8, [&](int64_t begin, int64_t end, int) { scale_rows(args, begin, end); });
  });
}

double factor_at(const TensorView& above, const TensorView& length, int64_t i) {
  return read_element(length, i) == 0 ? 0 : read_element(above, i) / read_element(length, i);
}

std::unique_ptr<CpuKernel> magnitude_reference(const KernelSpec& spec) {
  return kernel_of([at = MagnitudeInputs(spec.attrs)](const KernelCall& call) {
    const TensorView& z = call.inputs[MagnitudeInputs::z];
    const int64_t width = z.dims.back();
    for (int64_t i = 0; i < z.count(); ++i) {
      double value = read_element(z, i) * factor_at(call.inputs[MagnitudeInputs::magnitude],
                                                    call.inputs[MagnitudeInputs::lengths], i % width);
      if (at.bias != 0) value += read_element(call.inputs[at.bias], i % width);
      if (at.residual != 0) value += read_element(call.inputs[at.residual], i);
      write_element(call.outputs[0], i, value);
    }
  });
}

std::unique_ptr<CpuKernel> magnitude_grad_simd(const KernelSpec& spec) {
  return kernel_of([accumulate = std::string(spec.attrs.text("accumulate", "always")),
                    rows = magnitude_rows(spec.inputs[MagnitudeGradInputs::z])](const KernelCall& call) {
    const TensorView &dy = call.inputs[MagnitudeGradInputs::dy], &z = call.inputs[MagnitudeGradInputs::z];
    const MagnitudeGradRows args{dy.data,
                                 z.data,
                                 call.inputs[MagnitudeGradInputs::magnitude].as<float>(),
                                 call.inputs[MagnitudeGradInputs::lengths].as<float>(),
                                 call.outputs[0].data,
                                 rows[2],
                                 dy.dtype,
                                 z.dtype};
    const RowChunks chunks = row_chunks(rows);
    const PartialSums sums(call.scratch, rows, 1);
    parallel_for(chunks.count(), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t chunk = begin; chunk < end; ++chunk)
        scale_rows_grad(args, chunks.begin(chunk), chunks.end(chunk), sums.at(chunk, 0));
    });
    sums.join(0, overwrites(accumulate, call.trip), call.outputs[1].as<float>());
  });
}

std::unique_ptr<CpuKernel> magnitude_grad_reference(const KernelSpec& spec) {
  return kernel_of([accumulate = std::string(spec.attrs.text("accumulate", "always"))](const KernelCall& call) {
    const TensorView &dy = call.inputs[MagnitudeGradInputs::dy], &z = call.inputs[MagnitudeGradInputs::z];
    const TensorView &magnitude = call.inputs[MagnitudeGradInputs::magnitude],
                     &lengths = call.inputs[MagnitudeGradInputs::lengths];
    const int64_t width = z.dims.back();
    auto* const sums = call.outputs[1].as<float>();
    for (int64_t column = 0; column < width; ++column) {
      double sum = 0;
      for (int64_t i = column; i < z.count(); i += width) sum += read_element(dy, i) * read_element(z, i);
      const double length = read_element(lengths, column);
      sum = length == 0 ? 0 : sum / length;
      sums[column] =
          static_cast<float>(sum + (overwrites(accumulate, call.trip) ? 0 : static_cast<double>(sums[column])));
    }
    for (int64_t i = 0; i < z.count(); ++i)
      write_element(call.outputs[0], i, read_element(dy, i) * factor_at(magnitude, lengths, i % width));
  });
}

}  // namespace

void register_dora_cpu(CpuKernels& kernels) {
  kernels.add("row_lengths", {{"simd", make_lengths_simd}, {"reference", make_lengths_reference}});
  kernels.add("magnitude", simd_and_reference<magnitude_simd, magnitude_reference>());
  kernels.add("magnitude_grad", simd_and_reference<magnitude_grad_simd, magnitude_grad_reference>());
}

}  // namespace headroom
