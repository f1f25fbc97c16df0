// The calibration of a GPU measures ops that the device has, on the device over host memory.
#include "runtime/calibrate/calibrate.h"

#include <gtest/gtest.h>

#include "../runtime/small_calibration.h"
#include "cuda_shim/host_runtime.h"
#include "device/cuda/cuda_device.h"

namespace headroom {
namespace {

TEST(CudaCalibration, MeasuresEveryRateOfAProfile) {
  DeviceFacts facts;
  facts.device = "cuda";
  facts.isa = 80;
  facts.alignment = 256;
  const std::unique_ptr<Device> device = make_cuda_device(make_host_runtime(), facts);
  const Profile profile = calibrate(
      *device, facts, "cuda-0", [](double) {}, small_calibration(), clock_reading);
  EXPECT_EQ(profile.facts.device, "cuda");
  EXPECT_EQ(profile.in_sequence.size(), 2u);
  EXPECT_GT(profile.memory_bytes, 0);
  EXPECT_GT(profile.copy_bytes_per_second, 0);
}

}  // namespace
}  // namespace headroom
