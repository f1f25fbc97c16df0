#include "planner/explain_frontier.h"
#include "planner/techniques/chunked_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headroom {
namespace {

using testing::HasSubstr;
using testing::Not;

FrontierPoint point(int64_t bytes, double seconds, int64_t chunk) {
  FrontierPoint made;
  made.peaks.device = bytes;
  made.step_seconds = seconds;
  made.candidate[techniques::chunked_loss].count = chunk;
  made.assigned = true;
  return made;
}

std::string frontier_text(const SearchResult& result) {
  std::string text;
  explain_frontier(1 << 30, result, text);
  return text;
}

TEST(ExplainFrontier, NeighboursThatLookAlikeAreOneLine) {
  SearchResult result;
  result.frontier = {point(1000000, 2.0, 64), point(1000100, 1.9999, 128), point(1000200, 1.9998, 256),
                     point(1200000, 1.9997, 512), point(1200100, 1.5, 1024)};
  const std::string text = frontier_text(result);
  EXPECT_THAT(text, HasSubstr("loss chunk 64,"));
  EXPECT_THAT(text, Not(HasSubstr("loss chunk 128,")));
  EXPECT_THAT(text, Not(HasSubstr("loss chunk 256,")));
  EXPECT_THAT(text, HasSubstr("loss chunk 512,"));
  EXPECT_THAT(text, HasSubstr("loss chunk 1024,"));
}

TEST(ExplainFrontier, TheChosenOneStandsForItsNeighbours) {
  SearchResult result;
  result.frontier = {point(1000000, 2.0, 64), point(1000100, 1.9999, 128), point(1000200, 1.9998, 256)};
  result.plan.feasible = true;
  result.plan.peak_bytes = 1000200;
  result.plan.step_seconds = 1.9998;
  const std::string text = frontier_text(result);
  EXPECT_THAT(text, HasSubstr(" > "));
  EXPECT_THAT(text, HasSubstr("loss chunk 256,"));
  EXPECT_THAT(text, Not(HasSubstr("loss chunk 64,")));
}

TEST(ExplainFrontier, PlansAboveTheBudgetSaySo) {
  SearchResult result;
  result.frontier = {point(1 << 20, 2.0, 64), point(int64_t{1} << 31, 1.0, 64)};
  EXPECT_THAT(frontier_text(result), HasSubstr("[above the budget]"));
}

}  // namespace
}  // namespace headroom
