// Hyper-parameters for tests of kernels that use random bits.
#pragma once

#include <cstring>

#include "cuda_shim/cuda_harness.h"
#include "ops/update/hyper.h"

namespace headroom::op_test {

// The scalars of a step; learning rate, decay and corrections are those of a run's first steps.
inline Tensor hyper_of(uint64_t seed, uint32_t step, double rate = 0.01) {
  Tensor hyper = Tensor::filled(DType::f32, {kHyperCount}, 0);
  hyper.set(kLearningRate, rate);
  hyper.set(kWeightDecay, 0.1);
  hyper.set(kBiasCorrection1, 0.271);
  hyper.set(kSqrtBiasCorrection2, 0.0547);
  std::memcpy(hyper.as<float>() + kSeed, &seed, sizeof(seed));
  std::memcpy(hyper.as<float>() + kStep, &step, sizeof(step));
  return hyper;
}

}  // namespace headroom::op_test
