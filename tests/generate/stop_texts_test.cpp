// Stop texts: no part of one is emitted, wherever the pieces are cut.
#include "generate/stop_texts.h"

#include <gtest/gtest.h>

#include "base/counter_random.h"

namespace headroom {
namespace {

// The text emitted for `pieces`, one after another.
std::string passed(std::vector<std::string> texts, const std::vector<std::string>& pieces, bool& stopped) {
  StopTexts stops(std::move(texts));
  std::string out;
  for (const std::string& piece : pieces) out += stops.push(piece);
  stopped = stops.stopped();
  return out + stops.finish();
}

TEST(StopTexts, WithoutAnyAllPasses) {
  StopTexts none({});
  EXPECT_EQ(none.push("all"), "all");
  EXPECT_FALSE(none.stopped());
}

TEST(StopTexts, SaysWhichTextStopped) {
  StopTexts stops({"late", "two", "one"});
  stops.push("on");
  EXPECT_EQ(stops.stopped_by(), nullptr);
  stops.push("e two");
  ASSERT_NE(stops.stopped_by(), nullptr);
  EXPECT_EQ(*stops.stopped_by(), "one");
}

TEST(StopTexts, HoldsBackOnlyWhatMayBeABeginning) {
  StopTexts stops({"\n\nUser:", "###"});
  EXPECT_EQ(stops.push("one #"), "one ");
  EXPECT_EQ(stops.push("2\n"), "#2");
  EXPECT_EQ(stops.push("\n"), "");
  EXPECT_EQ(stops.push("Use"), "");
  EXPECT_EQ(stops.push("s\n"), "\n\nUses");
  EXPECT_EQ(stops.push("##"), "\n");
  EXPECT_FALSE(stops.stopped());
  EXPECT_EQ(stops.push("# more"), "");
  EXPECT_TRUE(stops.stopped());
  EXPECT_EQ(stops.push("nothing"), "");
  EXPECT_EQ(stops.finish(), "");
}

TEST(StopTexts, TheEndGivesBackWhatWasHeld) {
  StopTexts stops({"end."});
  EXPECT_EQ(stops.push("the end"), "the ");
  EXPECT_EQ(stops.finish(), "end");
  EXPECT_FALSE(stops.stopped());
}

TEST(StopTexts, TheEarliestEndsIt) {
  bool stopped = false;
  EXPECT_EQ(passed({"cd", "b"}, {"abcd"}, stopped), "a");
  EXPECT_TRUE(stopped);
  EXPECT_EQ(passed({"abcd", "bc"}, {"abc"}, stopped), "a");
  EXPECT_TRUE(stopped);
  EXPECT_EQ(passed({"aab"}, {"a", "a", "a", "b"}, stopped), "a");
  EXPECT_TRUE(stopped);
}

TEST(StopTexts, CutsOfTheTextChangeNothing) {
  for (uint64_t round = 0; round < 500; ++round) {
    const auto draw = [&](uint64_t at, uint64_t below) { return mix64(mix64(round) + at) % below; };
    std::string text;
    for (uint64_t i = 0; i < 12; ++i) text += static_cast<char>('a' + draw(i, 2));
    const std::string stop = text.substr(draw(20, 6), 1 + draw(21, 5)) + (draw(22, 3) == 0 ? "c" : "");
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size(); at += pieces.back().size())
      pieces.push_back(text.substr(at, 1 + draw(30 + at, 4)));
    bool stopped = false;
    EXPECT_EQ(passed({stop}, pieces, stopped), text.substr(0, text.find(stop))) << text << " " << stop;
    EXPECT_EQ(stopped, text.find(stop) != std::string::npos);
  }
}

}  // namespace
}  // namespace headroom
