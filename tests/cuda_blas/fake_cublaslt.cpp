#include "fake_cublaslt.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "base/bfloat16.h"
#include "base/error.h"
#include "base/float16.h"

namespace headroom::cublaslt {

struct HandleOpaque {
  int unused = 0;
};
struct DescOpaque {
  int compute = 0, scale = 0;
  int32_t transposed_a = kNormal, transposed_b = kNormal;
  uint32_t epilogue = kEpilogueDefault;
  const void* bias = nullptr;
  int32_t bias_type = -1;
  const float *scale_a = nullptr, *scale_b = nullptr;
};
struct LayoutOpaque {
  int type = 0;
  uint64_t rows = 0, cols = 0;
  int64_t stride = 0;
};
struct PreferenceOpaque {
  uint64_t workspace = 0;
  uint32_t reductions = 7;
  uint32_t alignment[4] = {256, 256, 256, 256};
};

}  // namespace headroom::cublaslt

namespace headroom::cublaslt_test {
namespace {

using namespace cublaslt;

constexpr int kInvalid = 7;

Fake& fake() {
  static Fake instance;
  return instance;
}

template <typename T>
int make(T* out, T made) {
  *out = made;
  ++fake().descriptions;
  return kSuccess;
}
template <typename T>
int drop(T value) {
  delete value;
  --fake().descriptions;
  return kSuccess;
}

template <typename T>
int store(T& to, const void* from, size_t bytes) {
  if (from == nullptr || bytes != sizeof(T)) return kInvalid;
  std::memcpy(&to, from, bytes);
  return kSuccess;
}

int set_desc(Desc desc, int attribute, const void* value, size_t bytes) {
  switch (attribute) {
    case kDescTransA:
      return store(desc->transposed_a, value, bytes);
    case kDescTransB:
      return store(desc->transposed_b, value, bytes);
    case kDescEpilogue:
      return store(desc->epilogue, value, bytes);
    case kDescBiasPointer:
      return store(desc->bias, value, bytes);
    case kDescBiasType:
      return store(desc->bias_type, value, bytes);
    case kDescScaleA:
      return store(desc->scale_a, value, bytes);
    case kDescScaleB:
      return store(desc->scale_b, value, bytes);
    default:
      return kInvalid;
  }
}

int set_preference(Preference preference, int attribute, const void* value, size_t bytes) {
  if (attribute == kPreferWorkspace) return store(preference->workspace, value, bytes);
  if (attribute == kPreferReduction) return store(preference->reductions, value, bytes);
  if (attribute >= kPreferAlignmentA && attribute <= kPreferAlignmentD)
    return store(preference->alignment[attribute - kPreferAlignmentA], value, bytes);
  return kInvalid;
}

bool is_fp8(Layout layout) { return layout->type == kFloat8E4m3 || layout->type == kFloat8E5m2; }

// The library's documented requirements for fp8 products: A transposed and B not, sizes and rows in multiples of 16
// bytes, not both operands e5m2, scales, a bf16 bias.
bool consistent_fp8(Desc desc, Layout a, Layout b, Layout d) {
  for (Layout layout : {a, b, d})
    if (layout->rows % 16 != 0 || layout->cols % 16 != 0 || layout->stride % 16 != 0) return false;
  const bool scaled = desc->scale_a != nullptr && desc->scale_b != nullptr;
  return is_fp8(a) && is_fp8(b) && desc->transposed_a == kTransposed && desc->transposed_b == kNormal && scaled &&
         (a->type == kFloat8E4m3 || b->type == kFloat8E4m3) && desc->compute == kCompute32 &&
         (desc->epilogue != kEpilogueBias || desc->bias_type == kBfloat16);
}

// Whether the descriptions match. Columns are contiguous.
bool consistent(Desc desc, Layout a, Layout b, Layout c, Layout d) {
  const uint64_t m = desc->transposed_a ? a->cols : a->rows, k = desc->transposed_a ? a->rows : a->cols;
  const uint64_t n = desc->transposed_b ? b->rows : b->cols, other = desc->transposed_b ? b->cols : b->rows;
  for (Layout layout : {a, b, c, d})
    if (layout->rows == 0 || layout->cols == 0 || layout->stride < static_cast<int64_t>(layout->rows)) return false;
  if (desc->epilogue == kEpilogueBias &&
      (desc->bias == nullptr || (desc->bias_type != -1 && desc->bias_type != d->type)))
    return false;
  const bool fp8 = is_fp8(a) || is_fp8(b);
  if (fp8 && !consistent_fp8(desc, a, b, d)) return false;
  const bool types = fp8 ? c->type == d->type && !is_fp8(d) && desc->scale == kFloat32
                         : a->type == b->type && c->type == d->type && (d->type == kFloat32 || d->type == a->type) &&
                               desc->scale == kFloat32 && (desc->compute == kCompute32 || a->type == kFloat32);
  return types && k == other && m == d->rows && n == d->cols && c->rows == m && c->cols == n;
}

int heuristic(Handle, Desc desc, Layout a, Layout b, Layout c, Layout d, Preference preference, int wanted,
              Heuristic* found, int* count) {
  Fake& f = fake();
  ++f.searches;
  *count = 0;
  if (f.heuristic_status != kSuccess) return f.heuristic_status;
  if (!consistent(desc, a, b, c, d)) return kInvalid;
  f.alignment = preference->alignment[0];
  for (uint32_t alignment : preference->alignment)
    if (alignment != f.alignment) return kInvalid;
  if (desc->bias && reinterpret_cast<uintptr_t>(desc->bias) % f.alignment != 0) return kInvalid;
  for (int i = 0; i < f.known_count && *count < wanted; ++i) {
    const Fake::Known& known = f.known[i];
    const bool excluded = known.workspace > preference->workspace ||
                          (known.reduction != kReduceNone && (known.reduction & preference->reductions) == 0);
    if (excluded && !f.ignores_preferences) continue;
    found[*count] = {{{known.workspace, known.reduction, f.alignment}}, known.workspace, kSuccess, 1, {}};
    ++*count;
  }
  return *count == 0 ? kNotSupported : kSuccess;
}

int algorithm_get(const Algorithm* algorithm, int attribute, void* value, size_t bytes, size_t* written) {
  if (attribute != kAlgorithmReduction || bytes != 4) return kInvalid;
  const uint32_t reduction = static_cast<uint32_t>(algorithm->data[1]);
  std::memcpy(value, &reduction, 4);
  *written = 4;
  return kSuccess;
}

double fp8_value(int type, uint8_t code) {
  const int mantissa_bits = type == kFloat8E4m3 ? 3 : 2, bias = type == kFloat8E4m3 ? 7 : 15;
  const int steps = 1 << mantissa_bits, field = (code & 0x7f) / steps, mantissa = code % steps;
  const bool nan = type == kFloat8E4m3 ? (code & 0x7f) == 0x7f : (code & 0x7f) > 0x7c;
  if (nan) return std::nan("");
  const double size = field > 0 ? std::ldexp(steps + mantissa, field - bias - mantissa_bits)
                                : std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return code & 0x80 ? -size : size;
}

double element(const void* at, int type, int64_t index) {
  if (type == kFloat8E4m3 || type == kFloat8E5m2) return fp8_value(type, static_cast<const uint8_t*>(at)[index]);
  if (type == kFloat32) return static_cast<double>(static_cast<const float*>(at)[index]);
  if (type == kFloat16) return static_cast<double>(static_cast<float>(static_cast<const float16*>(at)[index]));
  return static_cast<double>(static_cast<float>(static_cast<const bfloat16*>(at)[index]));
}

double operand(const void* at, Layout layout, bool transposed, int64_t row, int64_t col) {
  if (transposed) std::swap(row, col);
  return element(at, layout->type, col * layout->stride + row);
}

int matmul(Handle handle, Desc desc, const void* alpha, const void* a, Layout la, const void* b, Layout lb,
           const void* beta, const void* c, Layout lc, void* d, Layout ld, const Algorithm* algorithm, void* workspace,
           size_t bytes, CudaStream) {
  Fake& f = fake();
  const bool rehearsed = launch_mode() == LaunchMode::load;
  ++(rehearsed ? f.rehearsals : f.products);
  f.workspace = bytes;
  f.compute = desc->compute;
  f.fp8_products += int{is_fp8(la) && !rehearsed};
  f.reduction = static_cast<uint32_t>(algorithm->data[1]);
  if (f.matmul_status != kSuccess) return f.matmul_status;
  if (!handle || !consistent(desc, la, lb, lc, ld) || bytes < algorithm->data[0]) return kInvalid;
  const float scale = *static_cast<const float*>(alpha), add = *static_cast<const float*>(beta);
  for (const void* at : {a, b, c, static_cast<const void*>(d)})
    if (reinterpret_cast<uintptr_t>(at) % algorithm->data[2] != 0) return kInvalid;
  if (desc->epilogue == kEpilogueBias && reinterpret_cast<uintptr_t>(desc->bias) % algorithm->data[2] != 0)
    return kInvalid;
  if (rehearsed) return kSuccess;
  std::memset(workspace, 0x5A, algorithm->data[0]);
  const int64_t depth = static_cast<int64_t>(desc->transposed_a ? la->rows : la->cols);
  for (int64_t col = 0; col < static_cast<int64_t>(ld->cols); ++col)
    for (int64_t row = 0; row < static_cast<int64_t>(ld->rows); ++row) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += operand(a, la, desc->transposed_a, row, k) * operand(b, lb, desc->transposed_b, k, col);
      sum *= static_cast<double>(scale);
      if (is_fp8(la)) sum *= static_cast<double>(*desc->scale_a) * static_cast<double>(*desc->scale_b);
      if (add != 0) sum += static_cast<double>(add) * element(c, lc->type, col * lc->stride + row);
      if (desc->epilogue == kEpilogueBias) sum += element(desc->bias, ld->type, row);
      const int64_t at = col * ld->stride + row;
      if (ld->type == kFloat32)
        static_cast<float*>(d)[at] = static_cast<float>(sum);
      else if (ld->type == kFloat16)
        static_cast<float16*>(d)[at] = float16(static_cast<float>(sum));
      else
        static_cast<bfloat16*>(d)[at] = bfloat16(static_cast<float>(sum));
    }
  return kSuccess;
}

}  // namespace

Fake& fresh_fake() {
  fake() = Fake();
  return fake();
}

Api fake_api() {
  Api api;
  api.create = [](Handle* handle) {
    if (fake().create_status != kSuccess) return fake().create_status;
    *handle = new HandleOpaque();
    ++fake().handles;
    return kSuccess;
  };
  api.destroy = [](Handle handle) {
    delete handle;
    --fake().handles;
    return kSuccess;
  };
  api.status_text = [](int status) { return status == 3 ? "out of memory" : "some failure"; };
  api.version = [] { return size_t{130100}; };
  api.create_desc = [](Desc* desc, int compute, int scale) { return make(desc, new DescOpaque{compute, scale}); };
  api.destroy_desc = [](Desc desc) { return drop(desc); };
  api.set_desc = set_desc;
  api.create_layout = [](Layout* layout, int type, uint64_t rows, uint64_t cols, int64_t stride) {
    return make(layout, new LayoutOpaque{type, rows, cols, stride});
  };
  api.destroy_layout = [](Layout layout) { return drop(layout); };
  api.create_preference = [](Preference* preference) { return make(preference, new PreferenceOpaque()); };
  api.destroy_preference = [](Preference preference) { return drop(preference); };
  api.set_preference = set_preference;
  api.heuristic = heuristic;
  api.algorithm_get = algorithm_get;
  api.matmul = matmul;
  return api;
}

}  // namespace headroom::cublaslt_test
