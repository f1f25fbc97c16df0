// headroom's table of cuBLASLt's interface against the library's header.
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#include <gtest/gtest.h>

#include <type_traits>

#include "ops/cuda/cublaslt_api.h"

namespace headroom::cublaslt {
namespace {

static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(Heuristic, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(Heuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(sizeof(cublasStatus_t) == sizeof(int) && sizeof(cudaDataType) == sizeof(int));
static_assert(sizeof(cublasComputeType_t) == sizeof(int) && sizeof(cublasLtMatmulDescAttributes_t) == sizeof(int));

// Every parameter of the library's function is a pointer where headroom's is, and has the same width.
template <typename Ours, typename Theirs>
struct Agree : std::false_type {};
template <typename... A, typename... B>
struct Agree<int (*)(A...), cublasStatus_t(B...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) != sizeof...(B))
      return false;
    else
      return ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>)&&...);
  }();
};
#define HR_AGREE(ours, theirs) static_assert(Agree<decltype(Api::ours), decltype(theirs)>::value, #theirs)
HR_AGREE(create, cublasLtCreate);
HR_AGREE(destroy, cublasLtDestroy);
HR_AGREE(create_desc, cublasLtMatmulDescCreate);
HR_AGREE(destroy_desc, cublasLtMatmulDescDestroy);
HR_AGREE(set_desc, cublasLtMatmulDescSetAttribute);
HR_AGREE(create_layout, cublasLtMatrixLayoutCreate);
HR_AGREE(destroy_layout, cublasLtMatrixLayoutDestroy);
HR_AGREE(create_preference, cublasLtMatmulPreferenceCreate);
HR_AGREE(destroy_preference, cublasLtMatmulPreferenceDestroy);
HR_AGREE(set_preference, cublasLtMatmulPreferenceSetAttribute);
HR_AGREE(heuristic, cublasLtMatmulAlgoGetHeuristic);
HR_AGREE(algorithm_get, cublasLtMatmulAlgoConfigGetAttribute);
HR_AGREE(matmul, cublasLtMatmul);
#undef HR_AGREE

TEST(CublasLtHeader, ValuesAreTheHeaders) {
  EXPECT_EQ(kSuccess, CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(kNotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(kFloat32, CUDA_R_32F);
  EXPECT_EQ(kFloat16, CUDA_R_16F);
  EXPECT_EQ(kBfloat16, CUDA_R_16BF);
  EXPECT_EQ(kFloat8E4m3, CUDA_R_8F_E4M3);
  EXPECT_EQ(kFloat8E5m2, CUDA_R_8F_E5M2);
  EXPECT_EQ(kCompute32, CUBLAS_COMPUTE_32F);
  EXPECT_EQ(kComputeFastBfloat16, CUBLAS_COMPUTE_32F_FAST_16BF);
  EXPECT_EQ(kComputeFastTf32, CUBLAS_COMPUTE_32F_FAST_TF32);
  EXPECT_EQ(kNormal, CUBLAS_OP_N);
  EXPECT_EQ(kTransposed, CUBLAS_OP_T);
  EXPECT_EQ(kDescTransA, CUBLASLT_MATMUL_DESC_TRANSA);
  EXPECT_EQ(kDescTransB, CUBLASLT_MATMUL_DESC_TRANSB);
  EXPECT_EQ(kDescEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
  EXPECT_EQ(kDescBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  EXPECT_EQ(kDescBiasType, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
  EXPECT_EQ(kDescScaleA, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
  EXPECT_EQ(kDescScaleB, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
  EXPECT_EQ(kEpilogueDefault, uint32_t{CUBLASLT_EPILOGUE_DEFAULT});
  EXPECT_EQ(kEpilogueBias, uint32_t{CUBLASLT_EPILOGUE_BIAS});
  EXPECT_EQ(kPreferWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  EXPECT_EQ(kPreferReduction, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
  EXPECT_EQ(kPreferAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  EXPECT_EQ(kPreferAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
  EXPECT_EQ(kPreferAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
  EXPECT_EQ(kPreferAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
  EXPECT_EQ(kReduceNone, uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE});
  EXPECT_EQ(kReduceInWorkspace, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  EXPECT_EQ(kAlgorithmReduction, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
}

}  // namespace
}  // namespace headroom::cublaslt
#endif
