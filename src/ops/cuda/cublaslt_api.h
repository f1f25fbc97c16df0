// The part of cuBLASLt's C interface that is used, as a table of functions: nothing links the library, a build does not
// need its header, and tests can use their own table. Values and signatures are those of cublasLt.h (the same from CUDA
// 11 to 13); tests/cuda_blas compares them with the header if it is installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "ops/cuda/launch.h"

namespace headroom::cublaslt {

struct HandleOpaque;
struct DescOpaque;
struct LayoutOpaque;
struct PreferenceOpaque;
using Handle = HandleOpaque*;
using Desc = DescOpaque*;
using Layout = LayoutOpaque*;
using Preference = PreferenceOpaque*;

struct Algorithm {
  uint64_t data[8];
};
// One result of the library's heuristic.
struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

constexpr int kSuccess = 0, kNotSupported = 15;
constexpr int kFloat32 = 0, kFloat16 = 2, kBfloat16 = 14, kFloat8E4m3 = 28, kFloat8E5m2 = 29;
constexpr int kCompute32 = 68, kComputeFastBfloat16 = 75, kComputeFastTf32 = 77;
constexpr int kNormal = 0, kTransposed = 1;
constexpr int kDescTransA = 3, kDescTransB = 4, kDescEpilogue = 7, kDescBiasPointer = 8, kDescBiasType = 26;
constexpr int kDescScaleA = 17, kDescScaleB = 18;
constexpr uint32_t kEpilogueDefault = 1, kEpilogueBias = 4;
constexpr int kPreferWorkspace = 1, kPreferReduction = 3;
constexpr int kPreferAlignmentA = 5, kPreferAlignmentB = 6, kPreferAlignmentC = 7, kPreferAlignmentD = 8;
// How parts of a sum over the depth are combined: there is one part only; or parts are stored in the workspace as
// floats and added in a separate step. Other ways add into the result.
constexpr uint32_t kReduceNone = 0, kReduceInWorkspace = 2;
constexpr int kAlgorithmReduction = 3;

// All functions except status_text and version return kSuccess or another status.
struct Api {
  int (*create)(Handle*) = nullptr;
  int (*destroy)(Handle) = nullptr;
  const char* (*status_text)(int) = nullptr;
  size_t (*version)() = nullptr;
  int (*create_desc)(Desc*, int compute, int scale) = nullptr;
  int (*destroy_desc)(Desc) = nullptr;
  int (*set_desc)(Desc, int attribute, const void*, size_t) = nullptr;
  int (*create_layout)(Layout*, int type, uint64_t rows, uint64_t cols, int64_t stride) = nullptr;
  int (*destroy_layout)(Layout) = nullptr;
  int (*create_preference)(Preference*) = nullptr;
  int (*destroy_preference)(Preference) = nullptr;
  int (*set_preference)(Preference, int attribute, const void*, size_t) = nullptr;
  int (*heuristic)(Handle, Desc, Layout a, Layout b, Layout c, Layout d, Preference, int wanted, Heuristic*,
                   int* found) = nullptr;
  int (*algorithm_get)(const Algorithm*, int attribute, void*, size_t, size_t* written) = nullptr;
  int (*matmul)(Handle, Desc, const void* alpha, const void* a, Layout, const void* b, Layout, const void* beta,
                const void* c, Layout, void* d, Layout, const Algorithm*, void* workspace, size_t,
                CudaStream) = nullptr;
};

// The table of the installed library, which stays open until the process ends; nullopt and the reason when there is
// none or a function is missing.
std::optional<Api> open_library(std::string& reason);

}  // namespace headroom::cublaslt
