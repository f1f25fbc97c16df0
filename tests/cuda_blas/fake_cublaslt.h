// cuBLASLt on the CPU: stores descriptions as the library's documentation says, and multiplies by them.
#pragma once

#include "ops/cuda/cublaslt_api.h"

namespace headroom::cublaslt_test {

// The fake's behaviour, and what it has seen; one at a time.
struct Fake {
  int create_status = cublaslt::kSuccess;
  int heuristic_status = cublaslt::kSuccess;
  int matmul_status = cublaslt::kSuccess;
  // The algorithms that the heuristic knows, best first: bytes of workspace, and how sums are combined.
  struct Known {
    uint64_t workspace = 0;
    uint32_t reduction = cublaslt::kReduceNone;
  };
  Known known[4] = {{0, cublaslt::kReduceNone}};
  int known_count = 1;
  bool ignores_preferences = false;  // returns algorithms that the preferences exclude

  int handles = 0;         // existing
  int descriptions = 0;    // existing: of products, operands and preferences
  int searches = 0;        // calls of the heuristic
  int products = 0;        // calls of matmul
  int fp8_products = 0;    // with fp8 operands
  int rehearsals = 0;      // in LaunchMode::load, which multiplies nothing
  uint64_t workspace = 0;  // granted to the last product
  uint32_t alignment = 0;  // promised to the last search
  uint32_t reduction = 0;  // of the last product
  int compute = 0;         // of the last product
};

// Replaces the last fake with a new one.
Fake& fresh_fake();
cublaslt::Api fake_api();

}  // namespace headroom::cublaslt_test
