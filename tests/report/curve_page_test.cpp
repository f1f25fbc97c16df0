// The page of plans by budget: well-formed, self-contained, and every point links to its plan.
#include "report/curve_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/least_bytes.h"
#include "engine/budget_plans.h"
#include "report/markup.h"
#include "small_run.h"
#include "well_formed.h"

namespace headroom::report {
namespace {

struct Bought {
  std::vector<Plan> plans = plans_by_budget(small_options(int64_t{1} << 20), small_model(6));
  std::vector<std::string> commands;

  Bought() {
    for (const Plan& plan : plans)
      commands.push_back("headroom plan --model 'a & <b>' --memory " + std::to_string(plan.peak_bytes));
  }
  std::string page(int64_t budget) const { return curve_page(plans, commands, budget); }
};

size_t count_in(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(CurvePage, IsWellFormedAndNeedsNothing) {
  const Bought bought;
  for (const int64_t budget : {int64_t{1} << 20, bought.plans.front().peak_bytes, int64_t{1} << 40}) {
    const std::string page = bought.page(budget);
    EXPECT_EQ(malformed(page), "");
    for (const char* part : {"<script", "http://", "https://", "url(", "@import", "<link", "<img", "<iframe", "onload"})
      EXPECT_EQ(page.find(part), std::string::npos) << part;
    EXPECT_THAT(page, testing::HasSubstr("prefers-color-scheme:dark"));
    EXPECT_THAT(page, testing::HasSubstr("width=device-width"));
  }
}

TEST(CurvePage, EveryPointLeadsToItsPlan) {
  const Bought bought;
  ASSERT_GT(bought.plans.size(), 3u);
  const std::string page = bought.page(int64_t{1} << 40);
  for (size_t i = 0; i < bought.plans.size(); ++i) {
    const std::string name = "plan-" + std::to_string(i + 1);
    EXPECT_EQ(count_in(page, "href=\"#" + name + "\""), 2u);  // in the chart of seconds and in the chart of peaks
    const size_t at = page.find("<article id=\"" + name + "\">");
    ASSERT_NE(at, std::string::npos);
    const std::string article = page.substr(at, page.find("</article>", at) - at);
    const Plan& plan = bought.plans[i];
    EXPECT_THAT(article, testing::HasSubstr(format_least_bytes(plan.peak_bytes)));
    EXPECT_THAT(article, testing::HasSubstr(duration(plan.step_seconds) + " a step"));
    EXPECT_THAT(article, testing::HasSubstr(escaped(bought.commands[i])));
    for (const auto& [technique, value] : taken_techniques(plan))
      EXPECT_THAT(article, testing::HasSubstr("<code>" + technique + " " + value + "</code>"));
  }
}

TEST(CurvePage, MarksTheBudget) {
  const Bought bought;
  const int64_t second = bought.plans[1].peak_bytes;
  const std::string page = bought.page(second);
  EXPECT_EQ(count_in(page, "what your budget buys"), 1u);
  EXPECT_LT(page.find("id=\"plan-2\""), page.find("what your budget buys"));
  EXPECT_GT(page.find("id=\"plan-3\""), page.find("what your budget buys"));
  EXPECT_THAT(bought.page(second - 1), testing::HasSubstr("id=\"plan-1\""));
  EXPECT_THAT(bought.page(int64_t{1} << 40), testing::HasSubstr("more memory gains nothing"));
  const std::string none = bought.page(bought.plans.front().peak_bytes - 1);
  EXPECT_EQ(count_in(none, "what your budget buys"), 0u);
  EXPECT_THAT(none, testing::HasSubstr("which buys nothing"));
}

}  // namespace
}  // namespace headroom::report
