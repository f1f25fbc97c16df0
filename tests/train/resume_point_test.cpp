// Where a run starts, by the contents of its output directory.
#include "train/resume_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../formats/temporary_directory.h"
#include "base/error.h"

namespace headroom {
namespace {

using testing::HasSubstr;

class ResumePointTest : public testing::Test {
 protected:
  void write_checkpoint(const std::string& name, int64_t step) {
    RunState state;
    state.step = step;
    state.techniques = {{"micro-batch", "2"}};
    std::filesystem::create_directories(directory_ / name);
    directory_.write(name + "/state.json", state_json(state));
  }
  SavingOptions saving(const std::string& resume) const {
    SavingOptions options;
    options.output_dir = directory_ / "out";
    options.resume_from_checkpoint = resume;
    return options;
  }
  ResumePoint find(const std::string& resume) {
    return find_resume_point(saving(resume), [&](const std::string& text) { notes_ += text; });
  }
  // The message and its remedy.
  std::string refusal(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return std::string(error.what()) + " | " + error.remedy();
    }
    return {};
  }

  TemporaryDirectory directory_;
  std::string notes_;
};

TEST_F(ResumePointTest, BeginsAtStepZeroWhereNothingIsAskedFor) {
  write_checkpoint("out/checkpoint-3", 3);
  const ResumePoint from = find("");
  EXPECT_FALSE(from.resumes());
  EXPECT_FALSE(from.restarts);
  EXPECT_EQ(from.state.step, 0);
}

TEST_F(ResumePointTest, TakesTheNewestOrTheNamedCheckpoint) {
  write_checkpoint("out/checkpoint-3", 3);
  write_checkpoint("out/checkpoint-12", 12);
  EXPECT_EQ(find("true").state.step, 12);
  const ResumePoint named = find((directory_ / "out/checkpoint-3").string());
  EXPECT_TRUE(named.resumes());
  EXPECT_EQ(named.state.step, 3);
  EXPECT_EQ(notes_, "");
}

TEST_F(ResumePointTest, StartsOverWhereARunEndedBeforeItsFirstCheckpoint) {
  std::filesystem::create_directories(directory_ / "out");
  directory_.write("out/metrics.jsonl", "");
  const ResumePoint from = find("true");
  EXPECT_TRUE(from.restarts);
  EXPECT_FALSE(from.resumes());
  EXPECT_THAT(notes_, HasSubstr("starting from step 0"));
  EXPECT_NO_THROW(check_output(saving("true"), from));
}

TEST_F(ResumePointTest, RefusesWhatIsNoCheckpointAndSaysWhichThereIs) {
  EXPECT_THAT(refusal([&] { find("true"); }), HasSubstr("holds no complete checkpoint"));
  write_checkpoint("out/checkpoint-3", 3);
  const std::string text = refusal([&] { find((directory_ / "out").string()); });
  EXPECT_THAT(text, HasSubstr("it has no state.json"));
  EXPECT_THAT(text, HasSubstr("checkpoint-3, or true for it"));
}

TEST_F(ResumePointTest, AFreshRunNeedsADirectoryWithoutAnother) {
  EXPECT_NO_THROW(check_output(saving(""), {}));
  write_checkpoint("out/checkpoint-3", 3);
  EXPECT_THAT(refusal([&] { check_output(saving(""), {}); }), HasSubstr("holds another run"));
  EXPECT_NO_THROW(check_output(saving("true"), find("true")));
  SavingOptions file = saving("");
  directory_.write("file", "");
  file.output_dir = directory_ / "file";
  EXPECT_THAT(refusal([&] { check_output(file, {}); }), HasSubstr("is not a directory"));
}

}  // namespace
}  // namespace headroom
