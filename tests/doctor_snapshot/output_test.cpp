// The outputs for a snapshot, for people and for programs.
#include "doctor/snapshot/snapshot_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "golden.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) out.push_back(line);
  return out;
}

size_t characters(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

SnapshotAnalysis analysed(const std::string& name) { return analyse_snapshot(golden(name)); }

// Tags opened and closed in order, attributes quoted.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = xml.find('<'); at != std::string::npos; at = xml.find('<', at + 1)) {
    const size_t end = xml.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    EXPECT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ("/" + open.back(), tag);
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  EXPECT_TRUE(open.empty());
}

class Output : public testing::TestWithParam<std::string> {};

TEST_P(Output, FitsAScreen) {
  const std::string text = snapshot_text(analysed(GetParam()), false);
  const auto lines = lines_of(text);
  EXPECT_LE(lines.size(), 20u);
  for (const std::string& line : lines) EXPECT_LE(characters(line), 80u) << line;
  EXPECT_EQ(text.back(), '\n');
  EXPECT_GT(lines_of(snapshot_text(analysed(GetParam()), true)).size(), lines.size());
}

TEST_P(Output, IsDrawnWithoutHelpFromOutside) {
  const SnapshotAnalysis analysis = analysed(GetParam());
  const std::string svg = snapshot_svg(analysis);
  EXPECT_EQ(svg.empty(), !analysis.has_trace);
  expect_well_formed(svg);
  for (const char* outside : {"<script", "href", "url(", "@import", "nan", "inf"})
    EXPECT_THAT(svg, Not(HasSubstr(outside)));
}

TEST_P(Output, IsTheSameEachTime) {
  const SnapshotAnalysis first = analysed(GetParam()), second = analysed(GetParam());
  EXPECT_EQ(snapshot_text(first, true), snapshot_text(second, true));
  EXPECT_EQ(snapshot_svg(first), snapshot_svg(second));
  EXPECT_EQ(snapshot_json(first), snapshot_json(second));
}

TEST_P(Output, JsonHoldsThePeak) {
  const SnapshotAnalysis analysis = analysed(GetParam());
  const Json json = Json::parse(snapshot_json(analysis).dump());
  ASSERT_EQ(json.at("devices").size(), analysis.devices.size());
  for (size_t i = 0; i < analysis.devices.size(); ++i) {
    const Json& peak = json["devices"][i]["peak"];
    EXPECT_EQ(peak.at("allocated_bytes"), analysis.devices[i].peak.allocated_bytes);
    int64_t sum = 0;
    for (const auto& [name, bytes] : peak.at("classes").items()) sum += bytes.get<int64_t>();
    EXPECT_EQ(sum, analysis.devices[i].peak.allocated_bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, Output, testing::ValuesIn(golden_names()),
                         [](const auto& info) { return info.param; });

TEST(SnapshotText, SaysWhatFailedAndWhetherFragmentsDidIt) {
  const std::string text = snapshot_text(analysed("oom_2_9"), false);
  EXPECT_THAT(text, HasSubstr("out of memory at 10 ms (event 70): asked for 8.02 MiB, device free 6.00 MiB"));
  EXPECT_THAT(text, HasSubstr("unused but held: 27.8 MiB in 7 blocks, largest 7.99 MiB"));
  EXPECT_THAT(text, HasSubstr("without fragments 25.8 MiB would have been left: try expandable_segments:True"));
  EXPECT_THAT(text, HasSubstr("held when it failed:"));
  EXPECT_THAT(snapshot_text(analysed("expandable_2_12"), false), Not(HasSubstr("try expandable_segments")));
}

TEST(SnapshotText, ShowsTheDeviceThatFailedOrPeakedHighest) {
  EXPECT_THAT(snapshot_text(analysed("two_devices_2_1"), false), HasSubstr("device 1 of 2"));
  const std::string all = snapshot_text(analysed("two_devices_2_1"), true);
  EXPECT_THAT(all, HasSubstr("device 0 of 2"));
}

TEST(SnapshotText, SaysWhatGrows) {
  EXPECT_THAT(snapshot_text(analysed("leak_2_6"), false),
              HasSubstr("grows by 1.00 MiB per optimizer step: project/train.py:97 remember"));
}

TEST(SnapshotText, AnEmptySnapshotIsSaidToBeEmpty) {
  const SnapshotAnalysis analysis = analyse_snapshot(read_snapshot("\x80\x02].", "e.pickle"));
  EXPECT_THAT(snapshot_text(analysis, true), HasSubstr("no device has memory in it"));
  EXPECT_TRUE(snapshot_svg(analysis).empty());
  EXPECT_EQ(snapshot_json(analysis).at("devices").size(), 0u);
}

TEST(TextTimeline, MarksPeakAndFailure) {
  const DeviceAnalysis device = analysed("oom_2_9").devices.at(0);
  const auto lines = lines_of(draw_text_timeline(device, 72, 5));
  ASSERT_EQ(lines.size(), 6u);
  for (const std::string& line : lines) EXPECT_LE(characters(line), 72u);
  EXPECT_EQ(lines.back().find('^') < lines.back().find('!'), true);
  EXPECT_THAT(lines[0], HasSubstr("█"));
  EXPECT_TRUE(draw_text_timeline(device, 0, 5).empty());
  EXPECT_TRUE(draw_text_timeline(DeviceAnalysis(), 72, 5).empty());
}

TEST(SnapshotJson, IsValidWhateverTheSnapshotHolds) {
  SnapshotAnalysis analysis =
      analyse_snapshot(read_snapshot("\x80\x02](}(U\x0atotal_sizeK\x08U\x06"
                                     "blocks](}(U\x04sizeK\x08U\x05stateU\x10"
                                     "active_allocatedU\x06"
                                     "frames](}(U\x04nameU\x03\xff\x1b<U\x08"
                                     "filenameU\x05\xfe&.pyueueue.",
                                     "bad\xff<&.pickle"));
  EXPECT_NO_THROW(snapshot_json(analysis).dump());
  ASSERT_EQ(analysis.devices.at(0).end.holders.size(), 1u);
  EXPECT_EQ(analysis.devices[0].end.holders[0].place,
            "?&.py:0 ?"
            "?<");
}

}  // namespace
}  // namespace headroom::doctor
