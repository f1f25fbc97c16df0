// Files that are not snapshots, broken files, and files made to waste time or memory.
#include <gtest/gtest.h>

#include <string>

#include "../formats/expect_error.h"
#include "doctor/snapshot/snapshot_output.h"
#include "golden.h"

namespace headroom::doctor {
namespace {

using namespace std::string_literals;

void expect_refused(const std::string& pickle, const std::string& part) {
  expect_error(ErrorKind::format, part, [&] { read_snapshot(pickle, "hostile.pickle"); });
}

std::string text(const std::string& value) { return "U"s + static_cast<char>(value.size()) + value; }
std::string number(int64_t value) {
  std::string out = "\x8a\x08";
  for (int i = 0; i < 8; ++i) out += static_cast<char>(static_cast<uint64_t>(value) >> 8 * i);
  return out;
}
// {name: value, ...} of pairs already pickled.
std::string dict(const std::string& pairs) { return "}(" + pairs + "u"; }
std::string list(const std::string& members) { return "](" + members + "e"; }
std::string segment(const std::string& more) { return dict(text("total_size") + number(4096) + more); }
std::string file_of(const std::string& segments, const std::string& traces = "](e") {
  return "\x80\x02" + dict(text("segments") + segments + text("device_traces") + traces) + ".";
}

// All processing of a snapshot.
void use(std::string_view bytes) {
  const SnapshotAnalysis analysis = analyse_snapshot(read_snapshot(bytes, "changed.pickle"));
  snapshot_text(analysis, false);
  snapshot_text(analysis, true);
  snapshot_svg(analysis);
  snapshot_json(analysis).dump();
}

TEST(HostileSnapshots, OtherPicklesAreNoSnapshots) {
  expect_refused("N.", "needs a dictionary and finds None");
  expect_refused("\x80\x02}.", "no memory snapshot");
  expect_refused("\x80\x02" + dict(text("state_dict") + "}") + ".", "neither 'segments' nor 'device_traces'");
  expect_refused("\x80\x02" + list("K\x05") + ".", "segments[0]: needs a dictionary and finds an integer");
  expect_refused("cos\nsystem\n(S'true'\ntR.", "byte 0: the pickle refers to os.system");
  expect_refused(file_of("K\x01"), "'segments' is an integer, not a list");
  expect_refused(file_of(list(""), list("}")), "not a list of lists");
}

TEST(HostileSnapshots, FiguresThatCannotBeAreRefusedAtTheirPlace) {
  expect_refused(file_of(list("}")), "segments[0]: 'total_size' is missing");
  expect_refused(file_of(list(dict(text("total_size") + text("x")))), "'total_size' is a text");
  expect_refused(file_of(list(dict(text("total_size") + number(-1)))), "'total_size' is -1 bytes");
  expect_refused(file_of(list(dict(text("total_size") + number(INT64_MAX)))), "which no device has");
  expect_refused(file_of(list(segment(text("device") + number(5000)))), "device 5000 cannot be");
  expect_refused(file_of(list(segment(text("address") + text("x")))), "'address' is not an address");
  expect_refused(file_of(list(segment(text("address") + number(INT64_MAX)))), "'address' is not an address");
  const std::string block = dict(text("size") + number(4097));
  expect_refused(file_of(list(segment(text("blocks") + list(block)))), "segments[0][0]: the blocks");
  const std::string event = dict(text("action") + text("alloc") + text("size") + number(-5));
  expect_refused(file_of("](e", list(list("}" + event))), "device_traces[0][1]: 'size' is -5 bytes");
  std::string huge;
  for (int i = 0; i < 20000; ++i) huge += dict(text("total_size") + number(int64_t{1} << 48));
  expect_refused(file_of(list(huge)), "exceed 4 EiB");
}

TEST(HostileSnapshots, RepeatedRecordsDoNotMultiply) {
  // 2000 references to one segment with 2000 references to one block.
  std::string blocks, segments;
  for (int i = 0; i < 2000; ++i) blocks += "h\1", segments += "h\2";
  const std::string block = dict(text("size") + number(0)) + "q\1" + "0";
  const std::string one = segment(text("blocks") + list(blocks)) + "q\2" + "0";
  expect_refused("\x80\x02" + block + one + list(segments) + ".", "repeats the same records");
  // An event with many entries, referenced many times.
  std::string entries, events;
  for (int i = 0; i < 100; ++i) entries += number(i) + "N";
  for (int i = 0; i < 2000; ++i) events += "h\1";
  expect_refused("\x80\x02" + dict(entries) + "q\1" + "0" + dict(text("device_traces") + list(list(events))) + ".",
                 "more than 64 entries");
}

TEST(HostileSnapshots, CyclesEnd) {
  // A stack that contains itself, and a segment among its own blocks.
  const std::string stack =
      "]q\1h\1"
      "a0";
  use("\x80\x02" + stack + list(segment(text("frames") + "h\1")) + ".");
  const std::string self =
      "}q\1(" + text("total_size") + number(0) + text("size") + number(0) + text("blocks") + "](h\1eu";
  use("\x80\x02" + list(self) + ".");
}

TEST(HostileSnapshots, AddressesAboveHalfTheSpaceAreRead) {
  // Like those of Intel GPUs, written by Python as a nine-byte number.
  const std::string high = "\x8a\x09"s + "\0\0\0\0\0\0\0\xff\0"s;
  const std::string block = dict(text("size") + number(4096) + text("state") + text("active_allocated"));
  const Snapshot snapshot = read_snapshot(
      "\x80\x02" + list(segment(text("address") + high + text("blocks") + list(block))) + ".", "xpu.pickle");
  EXPECT_EQ(static_cast<uint64_t>(snapshot.segments.at(0).blocks.at(0).address), 0xff00000000000000u);
  EXPECT_EQ(analyse_snapshot(snapshot).devices.at(0).end.allocated_bytes, 4096);
}

TEST(HostileSnapshots, EveryPrefixIsRefused) {
  for (const char* name : {"private_pool_2_1", "segments_1_13", "history_2_0"}) {
    const std::string bytes = golden_bytes(name);
    for (size_t size = 0; size < bytes.size(); ++size)
      EXPECT_THROW(read_snapshot(std::string_view(bytes).substr(0, size), name), Error) << name << " " << size;
  }
}

TEST(HostileSnapshots, EveryChangedByteIsReadOrRefused) {
  for (const char* name : {"private_pool_2_1", "segments_1_13"}) {
    const std::string bytes = golden_bytes(name);
    for (size_t i = 0; i < bytes.size(); ++i)
      for (const int change : {1, 8, 0x80}) {
        std::string changed = bytes;
        changed[i] = static_cast<char>(changed[i] ^ change);
        try {
          use(changed);
        } catch (const Error&) {
        }
      }
  }
}

}  // namespace
}  // namespace headroom::doctor
