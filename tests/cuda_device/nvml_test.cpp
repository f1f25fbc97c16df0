#include <gtest/gtest.h>
#include <unistd.h>

#include "device/cuda/nvml.h"

namespace headroom {
namespace {

NvmlTable fake_table() {
  NvmlTable table;
  table.init = [] { return 0; };
  table.shutdown = [] { return 0; };
  table.device_by_bus_id = [](const char* bus_id, void** device) {
    *device = nullptr;
    return std::string(bus_id) == "00000000:1B:00.0" ? 0 : 6;
  };
  table.running_processes = [](void*, unsigned* count, void* infos) {
    auto* info = static_cast<NvmlProcessInfo*>(infos);
    info[0] = {4000000001u, 1ull << 30, 0, 0};
    info[1] = {static_cast<unsigned>(::getpid()), 3ull << 30, 0, 0};
    info[2] = {4000000001u, 4ull << 30, 0, 0};
    info[3] = {4000000002u, ~0ull, 0, 0};
    *count = 4;
    return 0;
  };
  return table;
}

TEST(Nvml, AddsUpAProcessAndNamesIt) {
  const std::vector<GpuProcess> found = gpu_processes("00000000:1B:00.0", fake_table());
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].bytes, int64_t{5} << 30);
  EXPECT_EQ(found[0].name, "");
  EXPECT_EQ(found[1].pid, ::getpid());
  EXPECT_FALSE(found[1].name.empty());
  EXPECT_EQ(found[2].bytes, 0);
  EXPECT_EQ(describe({found[0], found[2]}),
            "a process (pid 4000000001) holds 5.00 GiB, a process (pid 4000000002) holds memory");
  EXPECT_EQ(describe(found, 1), "a process (pid 4000000001) holds 5.00 GiB, and 2 more");
}

TEST(Nvml, SaysNothingWithoutLibraryOrDevice) {
  EXPECT_TRUE(gpu_processes("00000000:1B:00.0", NvmlTable{}).empty());
  EXPECT_TRUE(gpu_processes("00000000:AA:00.0", fake_table()).empty());
  EXPECT_EQ(describe({}), "");
}

}  // namespace
}  // namespace headroom
