// CPU kernels of embedding and embedding_grad. Loading the data refuses ids outside the table; the kernels clamp ids.
#include <algorithm>

#include "base/threads.h"
#include "ir/row_slice.h"
#include "ops/add/simd.h"
#include "ops/cast/convert.h"
#include "ops/cpu/coded_matrix.h"
#include "ops/embedding/operands.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

int64_t row_of(int32_t id, int64_t rows) { return std::clamp<int64_t>(id, 0, rows - 1); }

constexpr int64_t kNoRow = -1;

// The rows of a table that a call sees: all of them, or a slice.
class SeenRows {
 public:
  explicit SeenRows(const KernelSpec& spec) : sliced_(row_slice(spec.attrs)) {}
  // The row of an id; kNoRow if it is in another slice.
  int64_t at(int32_t id, const TensorView& table, const KernelCall& call) const {
    if (!sliced_) return row_of(id, table.dims[0]);
    const int64_t row = id - call.first_row;
    return row >= 0 && row < table.dims[0] ? row : kNoRow;
  }

 private:
  bool sliced_;
};

constexpr int64_t kNoPadding = -1;
int64_t padding_row(const KernelSpec& spec) { return spec.attrs.integer("padding", kNoPadding); }

CodedMatrix coded_table(const TensorView& table, const Storage& storage) {
  return {table.data, storage, table.count()};
}

// Rows of a table in blocks of codes, decoded a piece at a time and rounded to nearest even.
std::unique_ptr<CpuKernel> gather_decoded(const Storage& storage) {
  return kernel_of([storage](const KernelCall& call) {
    constexpr int64_t kPiece = 1024;
    const TensorView &ids = call.inputs[EmbeddingInputs::ids], &table = call.inputs[EmbeddingInputs::table],
                     &y = call.outputs[0];
    const CodedMatrix codes = coded_table(table, storage);
    const int64_t width = table.dims[1], bytes = dtype_bytes(y.dtype);
    parallel_for(ids.count(), 4, [&](int64_t begin, int64_t end, int) {
      float values[kPiece];
      for (int64_t i = begin; i < end; ++i)
        for (int64_t at = 0; at < width; at += kPiece) {
          const int64_t count = std::min(kPiece, width - at);
          codes.read(row_of(ids.as<int32_t>()[i], table.dims[0]) * width + at, count, values);
          convert_floats(values, DType::f32, y.as<std::byte>() + (i * width + at) * bytes, y.dtype, count);
        }
    });
  });
}

std::unique_ptr<CpuKernel> gather_simd(const KernelSpec& spec) {
  if (const Storage& storage = spec.inputs[EmbeddingInputs::table].storage; !storage.dense())
    return gather_decoded(storage);
  return kernel_of([seen = SeenRows(spec)](const KernelCall& call) {
    const TensorView &ids = call.inputs[EmbeddingInputs::ids], &table = call.inputs[EmbeddingInputs::table],
                     &y = call.outputs[0];
    const int64_t width = table.dims[1];
    const int64_t table_row = width * dtype_bytes(table.dtype), y_row = width * dtype_bytes(y.dtype);
    parallel_for(ids.count(), 4, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = seen.at(ids.as<int32_t>()[i], table, call);
        if (row == kNoRow) continue;
        convert_floats(table.as<std::byte>() + row * table_row, table.dtype, y.as<std::byte>() + i * y_row, y.dtype,
                       width);
      }
    });
  });
}

double element_of(const TensorView& table, const Storage& storage, int64_t index) {
  if (storage.dense()) return read_element(table, index);
  float value = 0;
  coded_table(table, storage).read(index, 1, &value);
  return static_cast<double>(value);
}

std::unique_ptr<CpuKernel> gather_reference(const KernelSpec& spec) {
  const Storage storage = spec.inputs[EmbeddingInputs::table].storage;
  return kernel_of([storage, seen = SeenRows(spec)](const KernelCall& call) {
    const TensorView &ids = call.inputs[EmbeddingInputs::ids], &table = call.inputs[EmbeddingInputs::table];
    const int64_t width = table.dims[1];
    for (int64_t i = 0; i < ids.count(); ++i) {
      const int64_t row = seen.at(ids.as<int32_t>()[i], table, call);
      for (int64_t j = 0; row != kNoRow && j < width; ++j)
        write_element(call.outputs[0], i * width + j, element_of(table, storage, row * width + j));
    }
  });
}

void zero(const TensorView& acc) {
  parallel_for(acc.count(), 4096, [&](int64_t begin, int64_t end, int) {
    std::fill(acc.as<float>() + begin, acc.as<float>() + end, 0.0f);
  });
}

// Each thread owns a range of columns and goes through the tokens in order: balanced whatever the ids, and every
// element is summed in the order of the tokens, for any team and any division into micro-batches.
std::unique_ptr<CpuKernel> scatter_simd(const KernelSpec& spec) {
  return kernel_of([accumulate = std::string(spec.attrs.text("accumulate", "always")), padding = padding_row(spec),
                    seen = SeenRows(spec)](const KernelCall& call) {
    const TensorView &ids = call.inputs[EmbeddingGradInputs::ids], &dy = call.inputs[EmbeddingGradInputs::dy],
                     &acc = call.outputs[0];
    if (overwrites(accumulate, call.trip)) zero(acc);
    const int64_t width = acc.dims[1], bytes = dtype_bytes(dy.dtype);
    parallel_for(width, 16, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = 0; i < ids.count(); ++i) {
        const int64_t row = seen.at(ids.as<int32_t>()[i], acc, call);
        if (row == kNoRow || row + call.first_row == padding) continue;
        accumulate_floats(dy.as<std::byte>() + (i * width + begin) * bytes, dy.dtype,
                          acc.as<float>() + row * width + begin, end - begin);
      }
    });
  });
}

std::unique_ptr<CpuKernel> scatter_reference(const KernelSpec& spec) {
  return kernel_of([accumulate = std::string(spec.attrs.text("accumulate", "always")), padding = padding_row(spec),
                    seen = SeenRows(spec)](const KernelCall& call) {
    const TensorView &ids = call.inputs[EmbeddingGradInputs::ids], &dy = call.inputs[EmbeddingGradInputs::dy],
                     &acc = call.outputs[0];
    if (overwrites(accumulate, call.trip)) zero(acc);
    const int64_t width = acc.dims[1];
    for (int64_t i = 0; i < ids.count(); ++i) {
      const int64_t row = seen.at(ids.as<int32_t>()[i], acc, call);
      if (row == kNoRow || row + call.first_row == padding) continue;
      for (int64_t j = 0; j < width; ++j)
        acc.as<float>()[row * width + j] += static_cast<float>(read_element(dy, i * width + j));
    }
  });
}

}  // namespace

void register_embedding_cpu(CpuKernels& kernels) {
  kernels.add("embedding", simd_and_reference<gather_simd, gather_reference>());
  kernels.add("embedding_grad", simd_and_reference<scatter_simd, scatter_reference>());
}

}  // namespace headroom
