// Two measurements of the user's own step, and the line through them.
#include "doctor/remedies/probe.h"

#include "base/error.h"
#include "incidents.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;

TEST(Probe, TheScriptIsOfShortLinesAndTakesAnyProgram) {
  const std::string script = probe_script();
  for (const char* part :
       {"runpy.run_path", "max_memory_allocated()", "reset_peak_memory_stats()", "Optimizer", "{batch}"})
    EXPECT_THAT(script, HasSubstr(part));
  for (size_t begin = 0; begin < script.size();) {
    const size_t end = script.find('\n', begin);
    ASSERT_NE(end, std::string::npos);
    EXPECT_LE(end - begin, 120u);
    begin = end + 1;
  }
}

TEST(Probe, TheStageOfThePeakIsThatOfTheLargestBatch) {
  const auto stage = [](const std::string& first, const std::string& second) {
    return stage_of_peak(read_probe("{\"batch\": 4, \"peak_bytes\": 9000, \"stage\": \"" + first +
                                        "\"}\n{\"batch\": 1, \"peak_bytes\": 8000, \"stage\": \"" + second + "\"}\n",
                                    "probe.txt"));
  };
  EXPECT_EQ(stage("backward", "optimizer_step"), "backward");
  EXPECT_EQ(stage("lunch", "backward"), "");
}

TEST(Probe, ReadsItsLinesAmongOthers) {
  const std::vector<ProbePoint> points = read_probe(
      "loading ...\n"
      "{\"batch\": 1, \"peak_bytes\": 8000000000, \"reserved_bytes\": 8500000000, \"outside_bytes\": 500000000}\n"
      "step 1 {\"batch\": 2, \"peak_bytes\": 9000000000, \"reserved_bytes\": 9500000000, \"outside_bytes\": "
      "500000000}\n"
      "{\"loss\": 2.3}\n{broken\n",
      "probe.txt");
  ASSERT_EQ(points.size(), 2u);
  const ProbeFit fit = fit_probe(points);
  EXPECT_DOUBLE_EQ(fit.per_sample_bytes, 1e9);
  EXPECT_DOUBLE_EQ(fit.fixed_bytes, 8e9);  // 7.5 from the line, 0.5 outside PyTorch
  EXPECT_DOUBLE_EQ(fit.residual_bytes, 0);
  // 0.97 x 24 - 8 = 15.28 samples.
  EXPECT_EQ(largest_batch(fit, 24000000000), 15);
  EXPECT_EQ(largest_batch(fit, 8000000000), 0);
  EXPECT_EQ(largest_batch(fit, 9300000000), 1);
}

TEST(Probe, LeastSquaresThroughMoreThanTwo) {
  const ProbeFit fit = fit_probe({{1, 3000, 0, 0, {}}, {2, 5100, 0, 0, {}}, {4, 9000, 0, 0, {}}});
  EXPECT_NEAR(fit.per_sample_bytes, 1992.9, 0.1);
  EXPECT_NEAR(fit.fixed_bytes, 1050, 0.1);
  EXPECT_LT(fit.residual_bytes, 70);
}

TEST(Probe, APeakThatDoesNotGrowFitsAnyBatch) {
  const ProbeFit fit = fit_probe({{1, 1000, 0, 0, {}}, {2, 990, 0, 0, {}}});
  EXPECT_EQ(fit.per_sample_bytes, 0);
  EXPECT_EQ(largest_batch(fit, 1 << 20), 1 << 20);
}

TEST(Probe, HostileLines) {
  const std::string deep(60000, '[');
  for (const std::string& text :
       {std::string(), std::string("{\"batch\": 1, \"peak_bytes\": 5}"),
        std::string("{\"batch\": 1, \"peak_bytes\": 5}\n{\"batch\": 1, \"peak_bytes\": 6}"),
        std::string("{\"batch\": -1, \"peak_bytes\": 5}\n{\"batch\": 1e300, \"peak_bytes\": 6}"),
        std::string("{\"batch\": 1, \"peak_bytes\": -5}\n{\"batch\": 2, \"peak_bytes\": 1e300}"),
        std::string("{\"batch\": \"1\", \"peak_bytes\": null}\n") + "{\"batch\": " + deep}) {
    try {
      read_probe(text, "probe.txt");
      ADD_FAILURE() << text.substr(0, 80);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::format);
      EXPECT_THAT(e.what(), HasSubstr("two are needed"));
      EXPECT_FALSE(e.remedy().empty());
    }
  }
}

}  // namespace
}  // namespace headroom::doctor
