// The choice between alternatives that were tried on the device.
#include <gtest/gtest.h>

#include <vector>

#include "ops/cuda/trial.h"

namespace headroom::cuda {
namespace {

int64_t chosen(const std::vector<Trial>& trials) { return fastest_alike(trials.data(), std::ssize(trials)); }

TEST(CudaTrial, TheFastestOfThoseWithTheFirstOnesBits) {
  EXPECT_EQ(chosen({{1.0, 7}}), 0);
  EXPECT_EQ(chosen({{1.0, 7}, {0.8, 7}, {0.7, 7}, {0.9, 7}}), 2);
  EXPECT_EQ(chosen({{1.0, 7}, {0.2, 8}, {0.9, 7}}), 2);  // the second sums in another order
  EXPECT_EQ(chosen({{1.0, 7}, {0.2, 8}, {0.3, 9}}), 0);
}

TEST(CudaTrial, TheLibrarysOrderStandsWhereLittleIsWon) {
  EXPECT_EQ(chosen({{1.0, 7}, {0.985, 7}}), 0);
  EXPECT_EQ(chosen({{1.0, 7}, {0.97, 7}, {0.965, 7}}), 2);
}

}  // namespace
}  // namespace headroom::cuda
