// Snapshots of every generation against the bytes that the allocator's model counted while it made them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "doctor/snapshot/snapshot_analysis.h"
#include "golden.h"

namespace headroom::doctor {
namespace {

class Golden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    truth_ = golden_truth().at(GetParam());
    snapshot_ = golden(GetParam());
    analysis_ = analyse_snapshot(snapshot_);
    ASSERT_EQ(analysis_.devices.size(), truth_.size());
  }

  // Calls check(device, its truth) for each device.
  template <typename Check>
  void each_device(Check check) {
    for (size_t i = 0; i < truth_.size(); ++i) check(analysis_.devices[i], truth_[i]);
  }

  Json truth_;
  Snapshot snapshot_;
  SnapshotAnalysis analysis_;
};

// Code line and class of the toy training's allocations.
using Holder = std::pair<std::string, MemoryClass>;
Holder holder_of(const std::string& place, bool native) {
  const std::map<std::string, Holder> holders{
      {"weights", {"project/train.py:31 build_model", MemoryClass::weights}},
      {"batch", {"project/data.py:17 move_to_device", MemoryClass::inputs}},
      {"attention", {"project/model.py:41 forward", MemoryClass::activations}},
      {"mlp", {"project/model.py:63 forward", MemoryClass::activations}},
      {"loss", {"project/train.py:52 loss_of", MemoryClass::loss}},
      {"backward", {native ? "MulBackward0 (C++)" : "(no Python frames: the backward thread)", MemoryClass::gradients}},
      {"states", {"project/train.py:88 train", MemoryClass::optimizer_state}},
      {"step", {"project/train.py:88 train", MemoryClass::optimizer_step}},
      {"recompute", {"project/model.py:41 forward", MemoryClass::recomputed}},
      {"metrics", {"project/train.py:97 remember", MemoryClass::other}},
      {"graph", {"project/serve.py:12 capture", MemoryClass::other}},
  };
  return holders.at(place);
}

TEST_P(Golden, PeakIsWhatTheAllocatorCounted) {
  each_device([](const DeviceAnalysis& device, const Json& truth) {
    EXPECT_EQ(device.device, truth.at("device"));
    EXPECT_EQ(device.events, truth.at("events"));
    EXPECT_EQ(device.unmatched_events, 0);
    EXPECT_EQ(device.end.allocated_bytes, truth.at("end_allocated_bytes"));
    EXPECT_EQ(device.end.reserved_bytes, truth.at("end_reserved_bytes"));
    if (!truth.contains("peak_event")) return;
    EXPECT_EQ(device.peak.allocated_bytes, truth.at("peak_allocated_bytes"));
    EXPECT_EQ(device.peak.event, truth.at("peak_event"));
    EXPECT_EQ(device.peak_reserved_bytes, truth.at("peak_reserved_bytes"));
    EXPECT_EQ(device.bytes_before, truth.at("bytes_before"));
    EXPECT_EQ(device.complete_history, truth.at("bytes_before") == 0);
  });
}

TEST_P(Golden, EveryEventIsReplayed) {
  each_device([](const DeviceAnalysis& device, const Json& truth) {
    if (!truth.contains("allocated")) return;
    ASSERT_EQ(device.timeline.size(), truth.at("allocated").size()) << "one column per event";
    for (size_t i = 0; i < device.timeline.size(); ++i) {
      const TimelineColumn& column = device.timeline[i];
      EXPECT_EQ(column.allocated_bytes, truth.at("allocated")[i]) << "event " << i;
      EXPECT_EQ(column.reserved_bytes, truth.at("reserved")[i]) << "event " << i;
      int64_t sum = 0;
      for (const int64_t bytes : column.by_class) sum += bytes;
      EXPECT_EQ(sum, column.allocated_bytes) << "event " << i;
    }
  });
}

TEST_P(Golden, PeakIsAttributed) {
  const bool native = GetParam().find("native") != std::string::npos;
  each_device([&](const DeviceAnalysis& device, const Json& truth) {
    if (!truth.contains("peak_places")) return;
    std::map<Holder, int64_t> expected, found;
    for (const auto& [place, bytes] : truth.at("peak_places").items())
      expected[holder_of(place, native)] += bytes.get<int64_t>();
    int64_t by_stack = 0;
    for (const MemoryHolder& holder : device.peak.holders) found[{holder.place, holder.kind}] += holder.bytes;
    for (const MemoryHolder& holder : device.peak.stack_holders) by_stack += holder.bytes;
    EXPECT_EQ(found, expected);
    EXPECT_EQ(by_stack, device.peak.allocated_bytes);
    EXPECT_TRUE(std::is_sorted(device.peak.holders.begin(), device.peak.holders.end(),
                               [](const auto& a, const auto& b) { return a.bytes > b.bytes; }));
  });
}

TEST_P(Golden, EndIsFragmentedAsTheAllocatorSays) {
  each_device([](const DeviceAnalysis& device, const Json& truth) {
    const Fragmentation& f = device.end_fragmentation;
    EXPECT_EQ(f.inactive_bytes, truth.at("end").at("inactive_bytes"));
    EXPECT_EQ(f.inactive_blocks, truth.at("end").at("inactive_blocks"));
    EXPECT_EQ(f.largest_inactive, truth.at("end").at("largest_inactive_bytes"));
    EXPECT_EQ(f.reserved_bytes, truth.at("end_reserved_bytes"));
    EXPECT_EQ(f.reserved_bytes, f.inactive_bytes + f.allocated_bytes);
    EXPECT_EQ(f.allocated_bytes - f.rounding_bytes, truth.at("end_allocated_bytes"));
  });
}

// The moment of the failure is reconstructed from the end: blocks and segments freed since then are present again.
TEST_P(Golden, FailuresAreSeenAsTheyWere) {
  each_device([](const DeviceAnalysis& device, const Json& truth) {
    const Json& failures = truth.at("failures");
    ASSERT_EQ(device.failures.size(), failures.size());
    EXPECT_EQ(device.failure_count, static_cast<int64_t>(failures.size()));
    EXPECT_EQ(device.failure.has_value(), !failures.empty());
    if (failures.empty()) return;
    const OutOfMemoryEvent& failure = device.failures.back();
    const Json& expected = failures.back();
    EXPECT_EQ(failure.event, expected.at("event"));
    EXPECT_EQ(failure.requested_bytes, expected.at("requested_bytes"));
    EXPECT_EQ(failure.device_free_bytes, expected.at("device_free_bytes"));
    EXPECT_EQ(failure.allocated_bytes, expected.at("allocated_bytes"));
    EXPECT_EQ(failure.reserved_bytes, expected.at("reserved_bytes"));
    EXPECT_EQ(Holder(failure.place, failure.kind), holder_of(expected.at("place"), false));
    const Fragmentation& f = device.failure_fragmentation.value();
    EXPECT_EQ(f.inactive_bytes, expected.at("inactive_bytes"));
    EXPECT_EQ(f.inactive_blocks, expected.at("inactive_blocks"));
    EXPECT_EQ(f.largest_inactive, expected.at("largest_inactive_bytes"));
    EXPECT_EQ(f.reserved_bytes, expected.at("reserved_bytes"));
    EXPECT_EQ(f.usable_bytes, 0) << "else it would not have failed";
    EXPECT_EQ(f.unusable_bytes + f.releasable_bytes, f.inactive_bytes);
  });
}

TEST_P(Golden, OnlyTheLeakGrows) {
  each_device([&](const DeviceAnalysis& device, const Json&) {
    EXPECT_EQ(device.growth.grows, GetParam() == "leak_2_6") << device.growth.unit;
  });
}

INSTANTIATE_TEST_SUITE_P(Versions, Golden, testing::ValuesIn(golden_names()),
                         [](const auto& info) { return info.param; });

TEST(GoldenSnapshots, TheLeakIsNamed) {
  const SnapshotAnalysis analysis = analyse_snapshot(golden("leak_2_6"));
  const AliveGrowth& growth = analysis.devices.at(0).growth;
  EXPECT_EQ(growth.unit, "optimizer step");
  EXPECT_EQ(growth.bytes_per_unit, 1 << 20);
  ASSERT_FALSE(growth.holders.empty());
  EXPECT_EQ(growth.holders[0].place, "project/train.py:97 remember");
}

TEST(GoldenSnapshots, StepsAreToldWithoutAnnotations) {
  const SnapshotAnalysis analysis = analyse_snapshot(golden("recompute_2_7"));
  EXPECT_EQ(analysis.devices.at(0).growth.unit, "optimizer step");
  EXPECT_EQ(analysis.devices.at(0).growth.lows.size(), 5u);
}

TEST(GoldenSnapshots, LostHistoryIsSaid) {
  const SnapshotAnalysis analysis = analyse_snapshot(golden("wrapped_2_3"));
  ASSERT_EQ(analysis.notes.size(), 1u);
  EXPECT_THAT(analysis.notes[0], testing::HasSubstr("before the first recorded event"));
  EXPECT_TRUE(analyse_snapshot(golden("train_2_5")).notes.empty());
}

TEST(GoldenSnapshots, ASnapshotWithoutEventsShowsTheEnd) {
  const SnapshotAnalysis analysis = analyse_snapshot(golden("segments_1_13"));
  EXPECT_FALSE(analysis.has_trace);
  EXPECT_TRUE(analysis.has_frames);
  EXPECT_EQ(analysis.devices.at(0).peak.allocated_bytes, analysis.devices.at(0).end.allocated_bytes);
  ASSERT_EQ(analysis.devices.at(0).end.holders.size(), 2u);
  EXPECT_EQ(analysis.devices.at(0).end.holders[0].kind, MemoryClass::optimizer_state);
  EXPECT_EQ(analysis.devices.at(0).end.holders[1].kind, MemoryClass::weights);
}

TEST(GoldenSnapshots, PrivatePoolsServeNobodyElse) {
  const Snapshot snapshot = golden("private_pool_2_1");
  const Fragmentation f = fragmentation_for(snapshot, 0, 2 << 20);
  EXPECT_EQ(f.private_pool_bytes, 20 << 20);
  EXPECT_EQ(f.usable_bytes, 16 << 20);    // of the ordinary segment
  EXPECT_EQ(f.unusable_bytes, 10 << 20);  // of the graph's
  EXPECT_EQ(fragmentation_for(snapshot, 0, 17 << 20).unusable_bytes, 26 << 20);
  EXPECT_EQ(fragmentation_for(snapshot, 0, 2 << 20, 7).usable_bytes, 0);
  EXPECT_EQ(fragmentation_for(snapshot, 0, 2 << 20, 7).other_stream_bytes, 16 << 20);
}

TEST(GoldenSnapshots, ExpandableSegmentsAreSeen) {
  const Snapshot snapshot = golden("expandable_2_12");
  EXPECT_EQ(snapshot.settings.expandable_segments, true);
  EXPECT_EQ(snapshot.settings.text, "expandable_segments:True");
  const DeviceAnalysis device = analyse_snapshot(snapshot).devices.at(0);
  EXPECT_EQ(device.end_fragmentation.expandable_bytes, device.end.reserved_bytes);
  EXPECT_EQ(device.end_fragmentation.releasable_bytes, 0) << "the cache was emptied";
}

}  // namespace
}  // namespace headroom::doctor
