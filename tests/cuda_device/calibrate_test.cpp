// The calibration of a GPU measures ops that the device supports, here on the device over host memory.
#include "runtime/calibrate/calibrate.h"

#include <gtest/gtest.h>

#include "../cuda_dnn/fake_dnn.h"
#include "../runtime/small_calibration.h"
#include "cuda_shim/host_runtime.h"
#include "device/cuda/cuda_device.h"
#include "ops/cuda/capabilities.h"
#include "planner/estimates.h"

namespace headroom {
namespace {

TEST(CudaCalibration, MeasuresEveryRateOfAProfile) {
  DeviceFacts facts;
  facts.device = "cuda";
  facts.capabilities = of_compute_capability(80);
  facts.alignment = 256;
  const std::unique_ptr<Device> device = make_cuda_device(make_host_runtime(), facts);
  const Profile profile = calibrate(
      *device, facts, "cuda-0", [](double) {}, small_calibration(), clock_reading);
  EXPECT_EQ(profile.facts.device, "cuda");
  EXPECT_EQ(profile.in_sequence.size(), 2u);
  EXPECT_GT(profile.memory_bytes, 0);
  EXPECT_GT(profile.copy_bytes_per_second, 0);
}

// The attention kernels that a plan may choose: cuDNN's if the device has them, and always headroom's own.
TEST(CudaCalibration, MeasuresAttentionByEachSetOfKernels) {
  const auto measured = [](int isa, bool with_cudnn) {
    DeviceFacts facts;
    facts.device = "cuda";
    facts.capabilities = of_compute_capability(isa);
    facts.alignment = 256;
    op_test::FakeDnnNotes notes;
    CudaLibraries libraries;
    if (with_cudnn) libraries.dnn = std::make_unique<op_test::FakeDnn>(notes);
    const std::unique_ptr<Device> device = make_cuda_device(make_host_runtime(), facts, std::move(libraries));
    std::string text;
    for (const AttentionRate& rate : calibrate(
                                         *device, facts, "cuda-0", [](double) {}, small_calibration(), clock_reading)
                                         .attention_kernels)
      text += fmt::format("{}{}{} ", rate.kernels, rate.forward > 0 ? " forward" : "",
                          rate.backward > 0 ? " backward" : "");
    return text;
  };
  EXPECT_EQ(measured(80, false), "own forward backward ");
  EXPECT_EQ(measured(80, true), "cudnn forward own forward backward cudnn_any_order backward ");
  EXPECT_EQ(measured(90, true), "cudnn forward backward own forward backward cudnn_any_order backward ");
}

// The measurement includes the streams and events of any plan's copies.
TEST(CudaCalibration, MeasuresWhatTheProcessHoldsBesideItsArena) {
  HostRuntimeLimits limits;
  limits.context_bytes = 100 << 20;
  limits.stream_bytes = 1 << 20;
  DeviceFacts facts;
  facts.device = "cuda";
  facts.capabilities = of_compute_capability(80);
  facts.alignment = 256;
  for (const bool tells : {true, false}) {
    CudaLibraries libraries;
    if (tells) libraries.nvml = telling_nvml();
    const std::unique_ptr<Device> device = make_cuda_device(make_host_runtime(limits), facts, std::move(libraries));
    const Profile profile = calibrate(
        *device, facts, "cuda-0", [](double) {}, small_calibration(), clock_reading);
    // Stream 0, in and out of the host and of the disk, and three for the disk's buffers.
    EXPECT_EQ(profile.context_bytes, tells ? 108 << 20 : 0);
    EXPECT_EQ(host_runtime_made_late(), 0);
    EXPECT_EQ(estimates(profile).empty(), tells);
    EXPECT_EQ(booked_context_bytes(profile), tells ? 108 << 20 : load_profile(kUnmeasuredGpu).context_bytes);
  }
}

}  // namespace
}  // namespace headroom
