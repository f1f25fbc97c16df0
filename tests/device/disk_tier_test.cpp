// The CPU with a disk below it: asynchronous copies in the order of their streams; failures are thrown by the waits.
#include "device/disk/disk_tier.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>

#include "device/device.h"
#include "disk_test.h"

namespace headroom::test {
namespace {

using testing::HasSubstr;

TEST_F(DiskTest, StreamsCopyInTheirOrderAndEventsTellWhenTheyAreDone) {
  const std::unique_ptr<Device> device = make_cpu_device_with_disk({}, path());
  constexpr int64_t kElements = 5000, kBytes = 4 * kElements;  // ends within a block
  std::byte* const memory = device->reserve_arena(Tier::device, 4 * kBytes);
  std::byte* const disk = device->reserve_arena(Tier::disk, 8 * kBytes);
  const StreamId in = device->create_stream(Tier::disk), out = device->create_stream(Tier::disk);
  const EventId written = device->create_event(), read = device->create_event();
  auto* const source = reinterpret_cast<int32_t*>(memory);
  auto* const target = reinterpret_cast<int32_t*>(memory + kBytes);
  for (int32_t round = 0; round < 600; ++round) {  // more than the queue holds
    std::iota(source, source + kElements, round);
    device->copy(disk + (round % 3) * 20480, memory, kBytes, out);
    device->record(written, out);
    device->wait(in, written);
    device->copy(memory + kBytes, disk + (round % 3) * 20480, kBytes, in);
    device->record(read, in);
    device->wait(0, read);
    ASSERT_EQ(target[0], round);
    ASSERT_EQ(target[kElements - 1], round + static_cast<int32_t>(kElements) - 1);
  }
  device->synchronize(out);
}

TEST_F(DiskTest, AQueueThatIsFullWaits) {
  const ScratchFile file(path(), 4 * kDiskBlockBytes);
  std::vector<std::byte> bytes(size_t{kDiskBlockBytes});
  CopyThread thread(file, buffers());
  for (int i = 0; i < 1000; ++i) thread.queue({bytes.data(), kDiskBlockBytes, (i % 4) * kDiskBlockBytes, i % 2 == 0});
  EXPECT_EQ(thread.queued(), 1000);
  thread.wait_for(1000);
}

TEST_F(DiskTest, AFailureIsThrownByEveryWaitFromThenOn) {
  const ScratchFile full(::open("/dev/full", O_RDWR | O_CLOEXEC), path(), true);
  std::vector<std::byte> bytes(size_t{kDiskBlockBytes});
  CopyThread thread(full, buffers());
  thread.queue({bytes.data(), kDiskBlockBytes, 0, false});
  thread.wait_for(1);
  for (int i = 0; i < 600; ++i) thread.queue({bytes.data(), kDiskBlockBytes, 0, true});
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(message([&] { thread.wait_for(601); }), HasSubstr("scratch file in " + path().string()));
}

TEST_F(DiskTest, AnEndDoesNotWaitForWhatIsQueued) {
  const ScratchFile file(path(), 4 * kDiskBlockBytes);
  std::vector<std::byte> bytes(size_t{kDiskBlockBytes});
  CopyThread thread(file, buffers());
  for (int i = 0; i < 200; ++i) thread.queue({bytes.data(), kDiskBlockBytes, 0, true});
}

TEST_F(DiskTest, RoomIsTakenBeforeTheArena) {
  const std::unique_ptr<Device> device = make_cpu_device_with_disk({}, path());
  device->require_room(Tier::device, int64_t{1} << 60);  // only reserving can tell
  device->require_room(Tier::disk, 0);
  EXPECT_THROW(device->require_room(Tier::disk, room() + (int64_t{8} << 30)), Error);
  EXPECT_TRUE(device->host_window().empty());
  EXPECT_NE(device->reserve_arena(Tier::disk, 10), nullptr);
  EXPECT_FALSE(device->host_window().empty());
  EXPECT_THROW(make_cpu_device({})->reserve_arena(Tier::disk, 10), InternalError);
}

TEST_F(DiskTest, TheArenaIsNoMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::unique_ptr<Device> device = make_cpu_device_with_disk({}, path());
  volatile std::byte* const disk = device->reserve_arena(Tier::disk, 10);
  EXPECT_DEATH(disk[0] = std::byte{1}, "");
}

}  // namespace
}  // namespace headroom::test
