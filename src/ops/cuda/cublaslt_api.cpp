#include "ops/cuda/cublaslt_api.h"

#include "ops/cuda/library.h"

namespace headroom::cublaslt {

std::optional<Api> open_library(std::string& reason) {
  constexpr const char* kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"};
  void* const library = cuda::open_library(kNames, reason);
  if (!library) return std::nullopt;
  Api api;
  const auto find = [&](const char* symbol, auto& function) {
    return cuda::find_function(library, symbol, function, reason);
  };
  const bool complete =
      find("cublasLtCreate", api.create) && find("cublasLtDestroy", api.destroy) &&
      find("cublasLtGetStatusString", api.status_text) && find("cublasLtGetVersion", api.version) &&
      find("cublasLtMatmulDescCreate", api.create_desc) && find("cublasLtMatmulDescDestroy", api.destroy_desc) &&
      find("cublasLtMatmulDescSetAttribute", api.set_desc) && find("cublasLtMatrixLayoutCreate", api.create_layout) &&
      find("cublasLtMatrixLayoutDestroy", api.destroy_layout) &&
      find("cublasLtMatmulPreferenceCreate", api.create_preference) &&
      find("cublasLtMatmulPreferenceDestroy", api.destroy_preference) &&
      find("cublasLtMatmulPreferenceSetAttribute", api.set_preference) &&
      find("cublasLtMatmulAlgoGetHeuristic", api.heuristic) &&
      find("cublasLtMatmulAlgoConfigGetAttribute", api.algorithm_get) && find("cublasLtMatmul", api.matmul);
  if (!complete) return std::nullopt;
  return api;
}

}  // namespace headroom::cublaslt
