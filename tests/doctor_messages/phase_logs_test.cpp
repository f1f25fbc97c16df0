// Logs written for the tests, with tracebacks of many shapes; the name up to "__" is the phase that the frames show.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "doctor/messages/log_scanner.h"
#include "doctor/messages/phase.h"
#include "doctor/messages/traceback.h"

namespace headroom::doctor {
namespace {

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> logs() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(HEADROOM_SOURCE_DIR "/tests/doctor_messages/logs")) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(PhaseLogs, EveryPhaseIsRight) {
  const auto paths = logs();
  ASSERT_GE(paths.size(), 20u);
  for (const auto& path : paths) {
    const std::string name = path.filename().string();
    const LogReport report = scan_log(content(path));
    ASSERT_FALSE(report.messages.empty()) << name;
    for (const Message& message : report.messages) {
      EXPECT_EQ(message.phase, name.substr(0, name.find("__"))) << name << ": " << message.phase_evidence;
      EXPECT_FALSE(message.frames.empty()) << name;
      EXPECT_FALSE(message.phase_evidence.empty()) << name;
    }
  }
}

TEST(PhaseLogs, FedInPieces) {
  for (const auto& path : logs()) {
    const std::string text = content(path);
    const LogReport whole = scan_log(text);
    for (const size_t piece : {1, 13, 1000}) {
      LogScanner scanner;
      for (size_t at = 0; at < text.size(); at += piece) scanner.feed(std::string_view(text).substr(at, piece));
      const LogReport parts = scanner.finish();
      ASSERT_EQ(parts.messages.size(), whole.messages.size()) << path;
      for (size_t i = 0; i < whole.messages.size(); ++i) {
        EXPECT_EQ(parts.messages[i].phase, whole.messages[i].phase);
        EXPECT_EQ(parts.messages[i].text, whole.messages[i].text);
        EXPECT_EQ(parts.messages[i].line, whole.messages[i].line);
      }
    }
  }
}

TEST(PhaseLogs, RanksKeepTheirOwnFramesAndFigures) {
  const LogReport report =
      scan_log(content(HEADROOM_SOURCE_DIR "/tests/doctor_messages/logs/forward__two_ranks_interleaved.log"));
  ASSERT_EQ(report.messages.size(), 2u);
  EXPECT_EQ(report.messages[0].rank, 0);
  EXPECT_EQ(report.messages[1].rank, 1);
  EXPECT_EQ(report.messages[0].device_index, 0);
  EXPECT_EQ(report.messages[1].device_index, 1);
  EXPECT_EQ(report.messages[0].requested_bytes, 1610612736);
  EXPECT_EQ(report.messages[1].requested_bytes, 1342177280);
  EXPECT_EQ(report.messages[0].frames.size(), report.messages[1].frames.size());
  EXPECT_EQ(report.messages[0].frames.back().function, "forward");
  EXPECT_EQ(report.messages[0].frames.back().line, 1180);
}

TEST(PhaseLogs, FramesOfAnEarlierTracebackDoNotCount) {
  const std::string log =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in evaluate\n    f()\nValueError: x\n" +
      std::string(100, '\n') +
      "RuntimeError: CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 8.00 GiB total capacity)\n";
  const LogReport report = scan_log(log);
  ASSERT_EQ(report.messages.size(), 1u);
  EXPECT_EQ(report.messages[0].phase, "unknown");
  EXPECT_TRUE(report.messages[0].frames.empty());
}

TEST(Frames, Shapes) {
  const auto python = parse_frame("  File \"/a/b.py\", line 12, in forward");
  ASSERT_TRUE(python);
  EXPECT_EQ(python->file, "/a/b.py");
  EXPECT_EQ(python->line, 12);
  EXPECT_EQ(python->function, "forward");
  const auto notebook = parse_frame("File ~/x/module.py:1501, in Module._call_impl(self, *args)");
  ASSERT_TRUE(notebook);
  EXPECT_EQ(notebook->function, "_call_impl");
  EXPECT_EQ(notebook->line, 1501);
  const auto old = parse_frame("~/x/module.py in forward(self, x)");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->function, "forward");
  const auto native =
      parse_frame("frame #5: torch::autograd::Engine::execute(int) + 0x1a (0x7f12 in /lib/libtorch_cpu.so)");
  ASSERT_TRUE(native);
  EXPECT_EQ(native->function, "torch::autograd::Engine::execute(int)");
  EXPECT_EQ(native->file, "/lib/libtorch_cpu.so");
  for (const char* other : {"", "File", "File \"", "File \"a", "File \"a\"", "File \"a\", line ", "frame #",
                            "frame #1:", "profile.py in use", "x = 1", "\xe2\x94\x82", "\xe2\x94\x82 a.py:"}) {
    EXPECT_FALSE(parse_frame(other)) << other;
  }
}

TEST(PhaseRules, CodeOfTheInnermostFrameHelpsWhereFramesAreMissing) {
  EXPECT_EQ(phase_of({{"main.py", 3, "<module>", "loss.backward()"}}).name, "backward");
  EXPECT_EQ(phase_of({{"main.py", 3, "train", "optimizer.step()"}}).name, "optimizer_step");
  EXPECT_EQ(phase_of({{"main.py", 3, "train", "y = model(x)"}}).name, "training");
  EXPECT_EQ(phase_of({{"main.py", 3, "<module>", "y = f(x)"}}).name, "unknown");
  EXPECT_EQ(phase_of({}).name, "unknown");
}

}  // namespace
}  // namespace headroom::doctor
