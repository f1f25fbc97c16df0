// One matmul primitive of oneDNN with plain layouts, scratch of the caller and no heap call of our own while running.
#pragma once

#include <dnnl.hpp>

#include <memory>
#include <string>
#include <vector>

#include "ops/cpu/matmul.h"

namespace headroom {

// A stored matrix of a batch: element (i, j) of product b lies at b * batch + i * row + j * col.
struct MatrixLayout {
  int64_t row = 0;
  int64_t col = 1;
  int64_t batch = 0;
};

// C[rows, cols] = A B [+ bias] [+ C], `batch` times.
struct OnednnMatmulSpec {
  MatmulSize size;
  int64_t batch = 1;
  DType operand = DType::f32;
  DType result = DType::f32;
  MatrixLayout a, b, c;
  bool bias = false;        // f32 [cols]
  bool accumulate = false;  // adds to what C holds
  float scale = 1;          // of the product
  int threads = 0;          // 0: the team; 1: for calls inside parallel_for
  int lanes = 1;            // callers that may run at the same time, each with its own `lane`
};

// The process's CPU engine. oneDNN's cache of primitives is switched off: kernels are shared by their owners.
const dnnl::engine& onednn_engine();

class OnednnMatmul {
 public:
  // Creates the primitive; nullptr and a reason when oneDNN has no fast implementation or needs more than `booked`
  // bytes.
  static std::unique_ptr<OnednnMatmul> create(const OnednnMatmulSpec& spec, int64_t booked, std::string& refusal);

  // Of each lane.
  int64_t scratch_bytes() const { return scratch_bytes_; }
  // `scratch`: scratch_bytes(), 64-byte aligned. Thread-safe across distinct lanes.
  void run(const void* a, const void* b, void* c, std::byte* scratch, const float* bias = nullptr, int lane = 0) const;

 private:
  // The memory objects of one caller: only their addresses change from run to run.
  struct Lane {
    dnnl::memory a, b, c, bias, workspace;
    std::vector<dnnl_exec_arg_t> arguments;
  };
  OnednnMatmul(const OnednnMatmulSpec& spec, const dnnl::matmul::primitive_desc& description);

  dnnl::matmul primitive_;
  dnnl::stream stream_;
  std::vector<Lane> lanes_;
  int64_t scratch_bytes_ = 0;
};

}  // namespace headroom
