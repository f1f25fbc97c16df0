// The screen fits a terminal of 80 x 24 for any input.
#include "doctor/output/screen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../data_files/data_files.h"
#include "base/error.h"
#include "doctor/answer/answer.h"
#include "doctor/output/wrapped_text.h"

namespace headroom::doctor {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Report ask(Request request, const std::string& input = "") {
  std::istringstream stream(input);
  return answer(request, stream).report;
}

void expect_terminal(const Report& report) {
  const std::string text = screen(report);
  const std::vector<std::string> lines = lines_of(text);
  EXPECT_LE(lines.size(), 24u) << text;
  for (const std::string& line : lines) EXPECT_LE(columns(line), 80u) << line;
  EXPECT_NE(text.find("FITS"), std::string::npos) << text;
  // The last lines are headroom's own command for the job, where there is one.
  const std::string& command = report.headroom.command;
  EXPECT_EQ(text.find("headroom, for") == std::string::npos && text.find("headroom needs") == std::string::npos,
            command.empty())
      << text;
  for (const std::string& line : lines_of(details(report))) {
    const bool of_the_patch = report.patch.find(line) != std::string::npos;
    EXPECT_TRUE(of_the_patch || columns(line) <= 110) << line;
  }
}

class ScreenOf : public testing::TestWithParam<fs::path> {};

TEST_P(ScreenOf, EveryMessage) {
  std::ifstream file(GetParam());
  ASSERT_TRUE(file);
  Request request;
  request.inputs = {"-"};
  for (std::string line; std::getline(file, line);) {
    const std::string text = nlohmann::json::parse(line).at("text");
    SCOPED_TRACE(text);
    const Report report = ask(request, text);
    expect_terminal(report);
    EXPECT_TRUE(screen(report).starts_with("OUT OF MEMORY"));
    request.parameters = "7B";
    expect_terminal(ask(request, text));
    request.parameters.clear();
  }
}

INSTANTIATE_TEST_SUITE_P(Files, ScreenOf, testing::ValuesIn(test::data_files("oom_messages.jsonl")),
                         [](const auto& param) { return test::data_file_label(param.param); });

TEST(Screen, EveryPublishedConfiguration) {
  int count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(test::data_file("configs"))) {
    if (!entry.is_regular_file() || entry.path().extension() == ".jsonl") continue;
    SCOPED_TRACE(entry.path().string());
    Request request;
    request.configs = {entry.path().string()};
    request.gpu = "t4";
    try {
      expect_terminal(ask(request));
      ++count;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(entry.path().filename().string()), std::string::npos) << e.what();
    }
  }
  EXPECT_GE(count, 180);
}

TEST(Screen, SaysThatNothingWasFound) {
  Request request;
  request.inputs = {"-"};
  const std::string text = screen(ask(request, "all is well\n"));
  EXPECT_TRUE(text.starts_with("NO OUT-OF-MEMORY MESSAGE FOUND")) << text;
}

TEST(Screen, AsksForWhatIsMissing) {
  Request request;
  request.inputs = {"-"};
  request.gpu = "h100";
  const std::string text =
      screen(ask(request, "{\"zero_optimization\": {\"stage\": 3}, \"bf16\": {\"enabled\": true}}"));
  EXPECT_NE(text.find("--model"), std::string::npos) << text;
  EXPECT_NE(text.find("--params"), std::string::npos) << text;
}

TEST(Wrap, KeepsWordsWithinTheWidth) {
  EXPECT_EQ(wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("abcdefghij", 4), (std::vector<std::string>{"abcd", "efgh", "ij"}));
  EXPECT_EQ(wrap("a b c d e f g h i j", 8, 1), (std::vector<std::string>{"a b ..."}));
  EXPECT_EQ(columns("übung"), 5u);
}

}  // namespace
}  // namespace headroom::doctor
