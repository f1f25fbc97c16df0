// Two plans side by side: every figure comes from one of the two files.
#include "report/plan_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <sstream>

#include "base/error.h"
#include "report/json_file.h"
#include "small_run.h"

namespace headroom::report {
namespace {

namespace fs = std::filesystem;

class PlanDiffTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "headroom-diff-XXXXXX").string();
    directory = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(directory); }

  fs::path write(const char* name, const std::string& text) const {
    std::ofstream(directory / name, std::ios::binary) << text;
    return directory / name;
  }

  void expect_refused(const fs::path& file, const char* reason, const char* remedy) const {
    const fs::path whole = write("whole.json", plan_json(planned(int64_t{1} << 40)));
    for (const auto& [a, b] : {std::pair{whole, file}, {file, whole}}) {
      try {
        plan_diff(a, b);
        FAIL() << "no error for " << file;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr(file.string()), testing::HasSubstr(reason)));
        EXPECT_THAT(error.remedy(), testing::HasSubstr(remedy));
      }
    }
  }

  static Plan planned(int64_t memory, const std::string& precision = "32-true") {
    TrainOptions options = small_options(memory);
    options.techniques.precision = precision;
    return search_training_plan(training_request(options, small_model(6))).plan;
  }

  fs::path directory;
};

int64_t sum_of(const std::vector<PlanDiff::Figures>& rows, const std::string& of) {
  int64_t sum = 0;
  for (const PlanDiff::Figures& row : rows)
    if (row.of == of) sum += row.more();
  return sum;
}

TEST_F(PlanDiffTest, SaysWhatMakesTheDifference) {
  const Plan large = planned(int64_t{1} << 40), small = planned(large.minimum_bytes);
  const PlanDiff diff = plan_diff(write("a.json", plan_json(large)), write("b.json", plan_json(small)));
  EXPECT_EQ(diff.peak, (std::array{large.peak_bytes, small.peak_bytes}));
  EXPECT_EQ(diff.step_seconds, (std::array{large.step_seconds, small.step_seconds}));
  std::vector<std::string> names;
  for (const PlanDiff::Words& words : diff.techniques) {
    names.push_back(words.name);
    EXPECT_NE(words.values[0], words.values[1]);
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"recompute", "chunked-loss", "micro-batch"}));
  EXPECT_THAT(names, testing::Not(testing::Contains("lora")));
  ASSERT_FALSE(diff.tensors.empty());
  for (size_t i = 1; i < diff.tensors.size(); ++i)
    EXPECT_GE(std::abs(diff.tensors[i - 1].more()), std::abs(diff.tensors[i].more()));
  // The difference of a class is the difference of its tensors.
  int64_t total = diff.process[1] - diff.process[0];
  for (const PlanDiff::Figures& figures : diff.breakdown) {
    total += figures.more();
    if (figures.name == "alignment") continue;
    EXPECT_EQ(figures.more(), sum_of(diff.tensors, figures.name)) << figures.name;
  }
  EXPECT_EQ(total, small.peak_bytes - large.peak_bytes);
}

TEST_F(PlanDiffTest, TiersBelowCountWhereTheyAreUsed) {
  TrainOptions options = small_options(int64_t{1} << 40);
  const Plan alone = search_training_plan(training_request(options, small_model(6))).plan;
  options.machine.disk_directory = ".";
  options.machine.disk_memory = int64_t{1} << 40;
  options.techniques.pins["offload-optimizer"] = "disk";
  const Plan on_disk = search_training_plan(training_request(options, small_model(6))).plan;
  const fs::path a = write("a.json", plan_json(alone)), b = write("b.json", plan_json(on_disk));
  EXPECT_TRUE(plan_diff(a, a).below.empty());
  const PlanDiff diff = plan_diff(a, b);
  ASSERT_EQ(diff.below.size(), 1u);
  EXPECT_EQ(diff.below[0].name, "disk");
  EXPECT_EQ(diff.below[0].bytes, (std::array{int64_t{0}, on_disk.disk.peak_bytes}));
  EXPECT_THAT(diff_text(diff), testing::HasSubstr("peak of the disk"));
  EXPECT_EQ(Json::parse(diff_json(diff)).at("tiers").at("disk").at(1), on_disk.disk.peak_bytes);
}

TEST_F(PlanDiffTest, APlanDiffersFromItselfInNothing) {
  const fs::path file = write("a.json", plan_json(planned(int64_t{1} << 40)));
  const PlanDiff diff = plan_diff(file, file);
  EXPECT_TRUE(diff.request.empty());
  EXPECT_TRUE(diff.techniques.empty());
  EXPECT_TRUE(diff.tensors.empty());
  EXPECT_THAT(diff_text(diff), testing::HasSubstr("no technique differs"));
}

TEST_F(PlanDiffTest, TheTableFitsATerminalAndTheJsonHasItsFields) {
  const Plan large = planned(int64_t{1} << 40), mixed = planned(int64_t{1} << 40, "bf16-mixed");
  const PlanDiff diff = plan_diff(write("a.json", plan_json(large)),
                                  write("b.json", plan_json(planned(mixed.minimum_bytes, "bf16-mixed"))));
  std::istringstream text(diff_text(diff));
  for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(diff_text(diff), testing::HasSubstr("bf16-mixed           A  off"));
  const Json json = Json::parse(diff_json(diff));
  EXPECT_EQ(json.at("peak_bytes").at(0), large.peak_bytes);
  EXPECT_EQ(json.at("breakdown").at("weights").at(0), large.breakdown.weights);
  EXPECT_EQ(json.at("techniques").at(0).size(), 3u);
  EXPECT_EQ(json.at("tensors").at(0).at("bytes").size(), 2u);
  EXPECT_EQ(json.at("request").at(0).at("name"), "batch");
}

TEST_F(PlanDiffTest, FilesThatAreNotPlansAreRefused) {
  expect_refused(directory / "none.json", "cannot read", "headroom plan --json");
  expect_refused(write("array.json", "[]"), "there is no \"feasible\"", "headroom plan --json");
  expect_refused(write("other.json", R"({"feasible": 1})"), "feasible is 1, not true or false", "headroom plan --json");
  expect_refused(write("text.json", "a plan"), "malformed JSON at byte 0", "headroom plan --json");
  const Plan large = planned(int64_t{1} << 40);
  expect_refused(write("small.json", plan_json(planned(int64_t{1} << 20))), "does not fit",
                 std::to_string(large.minimum_bytes).c_str());
  Json broken = Json::parse(plan_json(large));
  broken["breakdown"]["weights"] = -1;
  expect_refused(write("broken.json", broken.dump()), "breakdown.weights is -1, not 0 or more", "headroom plan --json");
}

TEST_F(PlanDiffTest, WithoutTensorsItSaysSo) {
  Json old = Json::parse(plan_json(planned(int64_t{1} << 40)));
  old.erase("tensors");
  const fs::path file = write("old.json", old.dump());
  EXPECT_THAT(diff_text(plan_diff(file, file)), testing::HasSubstr("plan it again"));
}

}  // namespace
}  // namespace headroom::report
