// Damaged state.json and metrics.jsonl: refused by name, or ignored.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "train/checkpoint.h"
#include "train/cut_metrics.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

class CheckpointState : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  // The refusal of a run's state.json with `key` replaced.
  std::string refusal(const std::string& key, const std::string& value) {
    RunState state;
    state.step = 3;
    state.best_step = 2;
    state.techniques = {{"micro-batch", "1"}};
    state.seed = UINT64_MAX;
    std::string text = state_json(state);
    const size_t at = text.find("\"" + key + "\": ");
    EXPECT_NE(at, std::string::npos) << key;
    const size_t begin = at + key.size() + 4, end = text.find_first_of(",\n", begin);
    std::ofstream(folder_ / "state.json") << text.replace(begin, end - begin, value);
    try {
      read_state(folder_);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::format);
      return error.what();
    }
    return "accepted";
  }

  fs::path folder_ = fs::temp_directory_path() / fmt::format("headroom-state-{}", ::getpid());
};

TEST_F(CheckpointState, IsReadAsWritten) { EXPECT_EQ(refusal("step", "3"), "accepted"); }

TEST_F(CheckpointState, CountsThatAreNoneAreRefusedByName) {
  for (const char* key : {"step", "next_sample", "seed", "data_key", "best_step", "evals_since_best"})
    for (const char* value : {"-1", "1.5", "1e300", "\"3\"", "null", "18446744073709551616"})
      EXPECT_NE(refusal(key, value).find(fmt::format("'{}' is not a whole number", key)), std::string::npos)
          << key << " " << value;
  EXPECT_NE(refusal("step", "9223372036854775807").find("'step'"), std::string::npos);
  EXPECT_NE(refusal("best_step", "4").find("best step 4 of 3"), std::string::npos);
  for (const char* value : {"\"0\"", "\"some\"", "\"\""})
    EXPECT_NE(refusal("micro-batch", value).find("not a setting of technique 'micro-batch'"), std::string::npos);
}

// The loss scale of fp16 is bitwise unchanged; an invalid one is refused.
TEST_F(CheckpointState, LossScaleIsReadAsWritten) {
  RunState state;
  state.step = 9;
  state.scaled = true;
  state.scaling = {0x1.8p13, 4, 2, 3};
  const std::string text = state_json(state);
  std::ofstream(folder_ / "state.json") << text;
  const RunState found = read_state(folder_);
  EXPECT_TRUE(found.scaled);
  EXPECT_EQ(found.scaling, state.scaling);
  for (const auto& [from, to] : {std::pair("12288.0", "0"),
                                 {"12288.0", "-4"},
                                 {"12288.0", "1e300"},
                                 {"\"skipped\": 3", "\"skipped\": 10"},
                                 {"\"patience\": 2", "\"patience\": -1"}}) {
    std::string other = text;
    ASSERT_NE(other.find(from), std::string::npos) << from << text;
    std::ofstream(folder_ / "state.json") << other.replace(other.find(from), std::string_view(from).size(), to);
    EXPECT_THROW(read_state(folder_), Error) << to;
  }
}

TEST_F(CheckpointState, MetricsKeepTheLinesOfStepsBefore) {
  const fs::path file = folder_ / "metrics.jsonl";
  std::ofstream(file)
      << "{\"step\": 1}\n{\"step\": 9}\nnull\n{\"step\": \"x\"}\n{\"step\": 1e300}\n{\"note\": 1}\n{\"step\": 2";
  EXPECT_FALSE(cut_metrics(file, 5));
  std::ifstream in(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "{\"step\": 1}\n{\"note\": 1}\n");
}

TEST_F(CheckpointState, MetricsSayWhetherTheLastStepWasEvaluated) {
  const fs::path file = folder_ / "metrics.jsonl";
  EXPECT_FALSE(cut_metrics(file, 3));  // there is none
  EXPECT_FALSE(fs::exists(file));
  std::ofstream(file) << "{\"step\": 2, \"eval_loss\": 1}\n{\"step\": 3}\n{\"step\": 3, \"eval_loss\": 1}";
  EXPECT_TRUE(cut_metrics(file, 3));
  EXPECT_TRUE(cut_metrics(file, 2));
  EXPECT_FALSE(cut_metrics(file, 1));
}

}  // namespace
}  // namespace headroom
