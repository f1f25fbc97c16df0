// The choice among ways that were tried on the device.
#include <gtest/gtest.h>

#include <vector>

#include "ops/cuda/trial.h"

namespace headroom::cuda {
namespace {

size_t chosen(const std::vector<Trial>& trials) { return fastest_alike(trials.data(), trials.size()); }

TEST(CudaTrial, TheFastestOfThoseWithTheFirstOnesBits) {
  EXPECT_EQ(chosen({{1.0, 7}}), 0u);
  EXPECT_EQ(chosen({{1.0, 7}, {0.8, 7}, {0.7, 7}, {0.9, 7}}), 2u);
  EXPECT_EQ(chosen({{1.0, 7}, {0.2, 8}, {0.9, 7}}), 2u);  // the second sums in another order
  EXPECT_EQ(chosen({{1.0, 7}, {0.2, 8}, {0.3, 9}}), 0u);
}

TEST(CudaTrial, TheLibrarysOrderStandsWhereLittleIsWon) {
  EXPECT_EQ(chosen({{1.0, 7}, {0.985, 7}}), 0u);
  EXPECT_EQ(chosen({{1.0, 7}, {0.97, 7}, {0.965, 7}}), 2u);
}

}  // namespace
}  // namespace headroom::cuda
