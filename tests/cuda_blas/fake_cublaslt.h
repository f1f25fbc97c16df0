// cuBLASLt on the CPU: keeps the descriptions it is given as the library's documents say, and multiplies by them.
#pragma once

#include "ops/cuda/cublaslt_api.h"

namespace headroom::cublaslt_test {

// What the fake does and what it has seen; one at a time.
struct Fake {
  int create_status = cublaslt::kSuccess;
  int heuristic_status = cublaslt::kSuccess;
  int matmul_status = cublaslt::kSuccess;
  // The algorithms that the heuristic knows, best first: bytes of workspace and the way sums come together.
  struct Known {
    uint64_t workspace = 0;
    uint32_t reduction = cublaslt::kReduceNone;
  };
  Known known[4] = {{0, cublaslt::kReduceNone}};
  int known_count = 1;
  bool ignores_preferences = false;  // answers algorithms that the preferences exclude

  int handles = 0;         // alive
  int descriptions = 0;    // alive: of products, operands and preferences
  int searches = 0;        // calls of the heuristic
  int products = 0;        // calls of matmul
  int fp8_products = 0;    // those of products whose operands are fp8
  int rehearsals = 0;      // those of them in LaunchMode::load, which multiply nothing
  uint64_t workspace = 0;  // bytes granted to the last product
  uint32_t alignment = 0;  // promised to the last search
  uint32_t reduction = 0;  // of the last product
  int compute = 0;         // of the last product
};

// A new fake in the place of the last one.
Fake& fresh_fake();
cublaslt::Api fake_api();

}  // namespace headroom::cublaslt_test
