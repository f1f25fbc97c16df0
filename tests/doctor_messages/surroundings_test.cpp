// What loggers, launchers, terminals and web pages add to a message does not change its figures.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "doctor/messages/log_prefix.h"
#include "doctor/messages/log_scanner.h"

namespace headroom::doctor {
namespace {

const std::vector<std::string> kWrapped = {
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.22 GiB. GPU 3 has a total capacity of 39.39",
    "GiB of which 812.31 MiB is free. Including non-PyTorch memory, this process has 38.58 GiB memory in use. Of",
    "the allocated memory 36.90 GiB is allocated by PyTorch, and 1.10 GiB is reserved by PyTorch but unallocated."};

int64_t hundredths(int64_t gib) { return (gib * (int64_t{1} << 30) + 50) / 100; }

void expect_figures(const std::string& log, const std::string& what) {
  const LogReport report = scan_log(log);
  ASSERT_EQ(report.messages.size(), 1u) << what;
  const Message& m = report.messages[0];
  EXPECT_EQ(m.framework, "pytorch-cuda") << what;
  EXPECT_EQ(m.requested_bytes, hundredths(222)) << what;
  EXPECT_EQ(m.capacity_bytes, hundredths(3939)) << what;
  EXPECT_EQ(m.process_bytes, hundredths(3858)) << what;
  EXPECT_EQ(m.allocated_bytes, hundredths(3690)) << what;
  EXPECT_EQ(m.reserved_unallocated_bytes, hundredths(110)) << what;
  EXPECT_EQ(m.device_index, 3) << what;
}

TEST(Surroundings, PrefixesOnEveryLine) {
  for (const char* prefix :
       {"2024-05-01 12:00:00.123 | ERROR    | app.train:main:12 - ", "2024-05-01 12:00:00,123 - trainer - ERROR - ",
        "[2024-05-01 12:00:00,123][hydra][ERROR] - ", "[2024-05-01, 12:00:00 UTC] {subprocess.py:93} INFO - ",
        "E0501 12:00:00.123456  1234 main.cc:12] ", "2024-05-01T12:00:00.1+02:00 node17 slurmstepd[33]: ",
        "[pod/trainer-abc/main] ", "10.0.0.17: ", "> ", "12: [rank12]: ", "\xe2\x94\x82 ",
        "  3%|#2        | 12/400 [00:12<06:40,  1.10s/it]", "\x1b[36m(RayTrainWorker pid=12, ip=10.0.0.1)\x1b[0m ",
        "2024-05-01T12:00:00.123456789Z stderr F ", "trainer-1  | "}) {
    std::string log;
    for (const std::string& line : kWrapped) log += prefix + line + "\r\n";
    expect_figures(log, prefix);
  }
}

// A title, or a summary at the end, that repeats how the message begins.
TEST(Surroundings, TheFullerOfTwoIsKept) {
  const std::string full = kWrapped[0] + " " + kWrapped[1] + " " + kWrapped[2];
  const std::string begun = "CUDA out of memory. Tried to allocate 2.22 GiB";
  const std::string frames = "Traceback (most recent call last):\n  File \"run.py\", line 9, in <module>\n    net(x)\n";
  expect_figures(begun + "\n\nMy network stops with\n" + full + "\n", "title");
  expect_figures(full + "\nIn short:\n" + begun + "\n", "summary");
  const LogReport report = scan_log(full + "\n\nOnce more:\n" + frames + "RuntimeError: " + begun + "\n");
  ASSERT_EQ(report.messages.size(), 1u);
  EXPECT_EQ(report.messages[0].repeats, 2);
  EXPECT_EQ(report.messages[0].frames.size(), 1u) << "those of the shorter one";
  EXPECT_EQ(scan_log("CUDA out of memory. Tried to allocate 3.00 GiB\n\n" + full + "\n").messages.size(), 2u)
      << "another request";
}

TEST(Surroundings, WordsTornInAShortLog) {
  std::string text;
  for (const std::string& line : kWrapped) text += line + " ";
  const auto replaced = [&](const std::string& blank) {
    std::string result;
    for (const char c : text) result += c == ' ' ? blank : std::string(1, c);
    return result;
  };
  expect_figures(replaced("\xc2\xa0"), "no-break spaces");
  expect_figures(replaced("\t"), "tabs");
  expect_figures(replaced("  "), "doubled blanks");
  expect_figures(replaced("\x1b[0m \x1b[31m"), "colours within");
  std::string narrow;
  for (size_t at = 0; at < text.size(); at += 11) narrow += text.substr(at, 11) + "\n";
  expect_figures(narrow, "eleven columns");
}

TEST(Surroundings, OrdinaryShortLogsHoldNoMessage) {
  const LogReport report = scan_log(
      "step 1 loss 2.3 mem 12.1 GiB allocated\nexcept torch.cuda.OutOfMemoryError:\n"
      "    print('| WARNING: retry')\nGPU 0 of 8, 40 GiB capacity\nProcess finished with exit code 0\n");
  EXPECT_TRUE(report.messages.empty());
}

std::string cleaned(std::string_view line) {
  std::optional<int> rank;
  return std::string(without_prefixes(line, rank));
}

TEST(Surroundings, WhatIsNoPrefixStays) {
  EXPECT_EQ(cleaned("2024-05-01 12:00:00 CUDA ERROR: out of memory"), " CUDA ERROR: out of memory");
  EXPECT_EQ(cleaned("2024-05-01 12:00:00 - a - ERROR - [0] misc/x.cc:71 NCCL WARN"), "[0] misc/x.cc:71 NCCL WARN");
  EXPECT_EQ(cleaned("node7:3141:3160 [5] NCCL WARN"), "node7:3141:3160 [5] NCCL WARN");
  EXPECT_EQ(cleaned("1.2.3: x"), "1.2.3: x");
  EXPECT_EQ(cleaned("Warning: 3%| of"), "Warning: 3%| of");
  EXPECT_EQ(cleaned("FATAL 12 GiB"), "FATAL 12 GiB");
}

}  // namespace
}  // namespace headroom::doctor
