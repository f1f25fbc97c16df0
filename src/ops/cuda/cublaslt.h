// CudaBlas implemented with cuBLASLt.
#pragma once

#include <memory>
#include <string>

#include "ops/cuda/blas.h"
#include "ops/cuda/cublaslt_api.h"

namespace headroom {

// Creates a handle of the library `api` for the calling thread's current device. Throws Error(run) when the library
// cannot create one.
std::unique_ptr<CudaBlas> make_cublaslt(const cublaslt::Api& api);

// The installed library; null and the reason when there is none, or when it does not work on the calling thread's
// current device.
std::unique_ptr<CudaBlas> open_cublaslt(std::string& reason);

}  // namespace headroom
