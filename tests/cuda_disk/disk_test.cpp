// A disk below the CUDA device: however much the GPU defers, copies have the bytes that the order of the queues
// implies; each of the implementation's waits is needed; error messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "../device/disk_test.h"
#include "../formats/file_size_limit.h"
#include "cuda_shim/host_runtime.h"
#include "deferred_runtime.h"
#include "device/cuda/cuda_device.h"
#include "ops/cuda/backend.h"
#include "runtime/copy_streams.h"

namespace headroom::test {
namespace {

using testing::HasSubstr;

constexpr int64_t kSlot = (int64_t{5} << 18) + 1000;  // bytes: two buffers' worth, ending within a block
constexpr int kSlots = 8;                             // of each tier
constexpr int64_t kDiskSlot = (kSlot + kDiskBlockBytes - 1) / kDiskBlockBytes * kDiskBlockBytes;

std::unique_ptr<Device> make_device(std::unique_ptr<CudaRuntime> runtime, const std::filesystem::path& disk) {
  DeviceFacts facts;
  facts.device = "cuda";
  facts.alignment = 256;
  return make_cuda_device(std::move(runtime), facts, {}, disk);
}

std::unique_ptr<CudaRuntime> deferred(const Deferral& deferral) {
  return std::make_unique<DeferredRuntime>(make_host_runtime(), deferral);
}

// Random copies between slots of the device and of the tiers below it, while work on the device rewrites slots. As in a
// plan, nothing accesses a copy's destination or writes its source before it was waited for. Each slot is filled with a
// number, which is checked.
class Traffic {
 public:
  // With `forgets`, copies are never waited for: a plan's fault that must be found.
  Traffic(Device& device, uint32_t seed, bool forgets)
      : device_(device), copies_(device), bits_(seed), forgets_(forgets) {
    for (const Tier tier : kArenaTiers)
      bases_[static_cast<size_t>(tier)] = device_.reserve_arena(tier, kSlots * slot_bytes(tier));
    for (const Tier tier : kLowerTiers) copies_.stream_of(Tier::device, tier), copies_.stream_of(tier, Tier::device);
    for (int64_t token = 0; token < kMost; ++token) events_.push_back(copies_.event_of(token));
    for (int place = 0; place < kPlaces; ++place) write(place, ++newest_);
  }

  // Returns false when a slot has the wrong number.
  bool run(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      if (below(3) == 0 || static_cast<int64_t>(flights_.size()) == kMost)
        land();
      else if (below(2) == 0)
        rewrite();
      else
        start();
    }
    while (!flights_.empty()) land();
    for (int place = 0; place < kPlaces; ++place)
      if (!holds(place)) return false;
    return true;
  }

 private:
  static constexpr int64_t kMost = 6;
  static constexpr int kPlaces = 3 * kSlots;  // the device's slots first, then each lower tier's
  struct Flight {
    int from = 0, to = 0;
    EventId done = 0;
  };

  static int64_t slot_bytes(Tier tier) { return tier == Tier::disk ? kDiskSlot : kSlot; }
  static Tier tier_of(int place) { return kArenaTiers[static_cast<size_t>(place / kSlots)]; }
  std::byte* at(int place) const {
    const Tier tier = tier_of(place);
    return bases_[static_cast<size_t>(tier)] + place % kSlots * slot_bytes(tier);
  }
  int below(int count) { return static_cast<int>(bits_() % static_cast<uint32_t>(count)); }
  bool is_read(int place) const {
    return std::any_of(flights_.begin(), flights_.end(), [&](const Flight& f) { return f.from == place; });
  }
  bool is_written(int place) const {
    return std::any_of(flights_.begin(), flights_.end(), [&](const Flight& f) { return f.to == place; });
  }

  void write(int place, uint32_t value) {
    const std::span<std::byte> window = device_.host_window();
    const std::span<uint32_t> words(reinterpret_cast<uint32_t*>(window.data()), kSlot / 4);
    for (size_t i = 0; i < words.size(); ++i) words[i] = value + static_cast<uint32_t>(i);
    device_.copy(at(place), window.data(), kSlot, 0);
    device_.synchronize(0);
    values_[static_cast<size_t>(place)] = value;
  }
  bool holds(int place) {
    const std::span<std::byte> window = device_.host_window();
    device_.copy(window.data(), at(place), kSlot, 0);
    device_.synchronize(0);
    const std::span<const uint32_t> words(reinterpret_cast<const uint32_t*>(window.data()), kSlot / 4);
    for (size_t i = 0; i < words.size(); ++i)
      if (words[i] != values_[static_cast<size_t>(place)] + static_cast<uint32_t>(i)) return false;
    return true;
  }

  // Like a kernel: replaces one slot of the device by another.
  void rewrite() {
    const int from = below(kSlots), to = below(kSlots);
    if (from == to || is_written(from) || is_written(to) || is_read(to)) return;
    device_.copy(at(to), at(from), kSlot, 0);
    values_[static_cast<size_t>(to)] = values_[static_cast<size_t>(from)];
  }
  void start() {
    int from = below(kSlots), to = kSlots + below(kPlaces - kSlots);
    if (below(2) == 0) std::swap(from, to);
    if (is_written(from) || is_written(to) || is_read(to)) return;
    const EventId done = events_.back();
    events_.pop_back();
    flights_.push_back({from, to, done});
    copies_.start(at(to), at(from), kSlot, copies_.stream_of(tier_of(from), tier_of(to)), done);
  }
  void land() {
    if (flights_.empty()) return;
    const auto flight = flights_.begin() + below(static_cast<int>(flights_.size()));
    if (!forgets_) copies_.wait(flight->done);
    values_[static_cast<size_t>(flight->to)] = values_[static_cast<size_t>(flight->from)];
    events_.push_back(flight->done);
    flights_.erase(flight);
  }

  Device& device_;
  CopyStreams copies_;
  std::mt19937 bits_;
  bool forgets_;
  std::array<std::byte*, 3> bases_{};  // indexed by tier
  std::array<uint32_t, size_t{kPlaces}> values_{};
  uint32_t newest_ = 0;
  std::vector<EventId> events_;  // events without a copy in flight
  std::vector<Flight> flights_;
};

class CudaDisk : public DiskTest {
 protected:
  bool carries(std::unique_ptr<CudaRuntime> runtime, uint32_t seed, bool forgets = false, int rounds = 60) {
    const std::unique_ptr<Device> device = make_device(std::move(runtime), path());
    return Traffic(*device, seed, forgets).run(rounds);
  }
};

TEST_F(CudaDisk, CopiesCarryTheirBytesWhateverIsPutOff) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    EXPECT_TRUE(carries(make_host_runtime(), seed)) << "all at once, seed " << seed;
    EXPECT_TRUE(carries(deferred({}), seed)) << "all late, seed " << seed;
    EXPECT_TRUE(carries(deferred({true, Fault::none}), seed)) << "copies late, seed " << seed;
  }
}

TEST_F(CudaDisk, WaitsThatAreMissingAreFound) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "races are what it makes";
#endif
  for (const Fault fault : {Fault::streams_do_not_wait, Fault::host_does_not_wait})
    EXPECT_FALSE(carries(deferred({false, fault}), 0)) << static_cast<int>(fault);
  EXPECT_FALSE(carries(deferred({}), 0, true)) << "the plan's";
}

// Copies by a thread and copies by the device alone, in one stream.
TEST_F(CudaDisk, AStreamKeepsItsOrder) {
  for (const bool late : {false, true}) {
    const std::unique_ptr<Device> device = make_device(late ? deferred({}) : make_host_runtime(), path());
    std::byte* const memory = device->reserve_arena(Tier::device, 2 * kSlot);
    std::byte* const disk = device->reserve_arena(Tier::disk, 2 * kDiskSlot);
    const StreamId stream = device->create_stream(Tier::disk);
    const std::span<std::byte> window = device->host_window().first(size_t{kSlot});
    std::fill(window.begin(), window.end(), std::byte{7});
    device->copy(memory, window.data(), kSlot, stream);
    device->copy(disk, memory, kSlot, stream);
    device->copy(memory + kSlot, disk, kSlot, stream);
    device->copy(memory, memory + kSlot, kSlot, stream);
    device->copy(disk + kDiskSlot, memory, kSlot, stream);
    device->synchronize(stream);
    std::fill(window.begin(), window.end(), std::byte{0});
    device->copy(window.data(), disk + kDiskSlot, kSlot, 0);
    EXPECT_TRUE(std::all_of(window.begin(), window.end(), [](std::byte b) { return b == std::byte{7}; }));
  }
}

TEST_F(CudaDisk, ItsBuffersAreWhatIsBooked) {
  const std::unique_ptr<Device> device = make_device(make_host_runtime(), path());
  const int64_t before = host_runtime_pinned();
  EXPECT_EQ(before, kCudaWindowBytes);
  Traffic(*device, 0, false).run(0);
  DeviceFacts facts;
  facts.device = "cuda";
  const int64_t buffers = host_runtime_pinned() - before - kSlots * kSlot;  // besides the host's arena
  EXPECT_LE(buffers, disk_process_bytes(facts));
  EXPECT_GT(buffers, disk_process_bytes(facts) * 9 / 10);
}

TEST_F(CudaDisk, AFailureIsThrownByTheWait) {
  const std::unique_ptr<Device> device = make_device(make_host_runtime(), path());
  std::byte* const memory = device->reserve_arena(Tier::device, kSlot);
  std::byte* const disk = device->reserve_arena(Tier::disk, kDiskSlot);
  CopyStreams copies(*device);
  const EventId done = copies.event_of(0);
  const FileSizeLimit full(size_t{1} << 20);
  copies.start(disk, memory, kSlot, copies.stream_of(Tier::device, Tier::disk), done);
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(
        message([&] { copies.wait(done); }),
        HasSubstr("writing 266240 bytes at 1048576 of the scratch file in " + path().string() + ": File too large"));
  EXPECT_THAT(message([&] { copies.synchronize(); }), HasSubstr("File too large"));
  EXPECT_THAT(message([&] { device->copy(disk, memory, kSlot, 0); }), HasSubstr("File too large"));
}

TEST_F(CudaDisk, RefusalsAreTheCpus) {
  const std::unique_ptr<Device> device = make_device(make_host_runtime(), path());
  EXPECT_THROW(device->require_room(Tier::disk, room() + (int64_t{8} << 30)), Error);
  device->require_room(Tier::disk, 0);
  EXPECT_THROW(make_device(make_host_runtime(), path() / "absent")->require_room(Tier::disk, 10), Error);
  EXPECT_THROW(make_device(make_host_runtime(), {})->reserve_arena(Tier::disk, 10), InternalError);
}

}  // namespace
}  // namespace headroom::test
