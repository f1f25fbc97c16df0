// Server-sent events that arrive in arbitrary pieces.
#include "bench_serve/event_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace headroom::bench {
namespace {

using Events = std::vector<std::string>;

Events read_in(const std::vector<std::string>& pieces) {
  Events events;
  EventReader reader([&](std::string_view data) { events.emplace_back(data); });
  for (const std::string& piece : pieces) EXPECT_TRUE(reader.read(piece));
  return events;
}

const std::string kStream =
    "\xef\xbb\xbf: ping\n\ndata: {\"a\":1}\n\nevent: x\r\ndata:b\r\ndata: c\r\n\r\nid: 7\rdata:  d\r\rdata\n\n\n\n"
    "retry: 5\n\ndata: \xc3\xa9\xf0\x9f\x98\x80\n\ndatas: no\n\ndata: [DONE]\n\ndata: cut";
const Events kEvents{"{\"a\":1}", "b\nc", " d", "", "\xc3\xa9\xf0\x9f\x98\x80", "[DONE]"};

TEST(EventReader, ReadsAllLineEndsAndFields) { EXPECT_EQ(read_in({kStream}), kEvents); }

TEST(EventReader, SplitAtEachByteItReadsTheSame) {
  for (size_t at = 0; at <= kStream.size(); ++at)
    EXPECT_EQ(read_in({kStream.substr(0, at), kStream.substr(at)}), kEvents) << at;
  Events bytes;
  for (const char c : kStream) bytes.emplace_back(1, c);
  EXPECT_EQ(read_in(bytes), kEvents);
}

TEST(EventReader, RandomBytesReadTheSameInAnyPieces) {
  std::mt19937 random(3);
  const std::string alphabet = "data: \n\r\n\r:x\xef\xbb\xbf";
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i)
      text += random() % 4 ? std::string(1, alphabet[random() % alphabet.size()]) : std::string("data:");
    Events pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t size = 1 + random() % 7;
      pieces.push_back(text.substr(at, size));
      at += size;
    }
    EXPECT_EQ(read_in(pieces), read_in({text})) << testing::PrintToString(text);
  }
}

TEST(EventReader, TellsWhetherAnEventIsOpen) {
  EventReader reader([](std::string_view) {});
  reader.read("data: a\n");
  EXPECT_TRUE(reader.inside_event());
  reader.read("\n");
  EXPECT_FALSE(reader.inside_event());
  reader.read("da");
  EXPECT_TRUE(reader.inside_event());
}

TEST(EventReader, EndsAtAnEndlessEvent) {
  EventReader reader([](std::string_view) { FAIL(); });
  const std::string piece(1 << 20, 'x');
  int taken = 0;
  while (taken < 64 && reader.read("data: " + piece + (taken % 2 ? "\n" : ""))) ++taken;
  EXPECT_LT(taken, 20);
  EXPECT_FALSE(reader.read("\n\n"));
}

}  // namespace
}  // namespace headroom::bench
