// Messages about host memory and shared memory from launchers, Windows and data loaders.
#include <gtest/gtest.h>

#include "doctor/messages/log_scanner.h"

namespace headroom::doctor {
namespace {

std::string format_of(const std::string& log) {
  const LogReport report = scan_log(log);
  return report.messages.empty() ? "" : report.messages.front().format;
}

TEST(HostMessages, EachIsKnownByItsOwnWords) {
  EXPECT_EQ(format_of("ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared "
                      "memory (shm).\n"),
            "shm_bus");
  EXPECT_EQ(format_of("OSError: [WinError 1455] The paging file is too small for this operation to complete.\n"),
            "paging_file");
  EXPECT_EQ(format_of("WARN exited: run_ui (terminated by SIGKILL; not expected)\n"), "sigkill");
  EXPECT_EQ(format_of("[launch.py:318:sigkill_handler] Killing subprocess 11961\n"), "killed_rank");
  EXPECT_EQ(format_of("Training task exit with status code 137\n"), "exit_137");
  EXPECT_EQ(format_of("Training task exit with status code 1\n"), "");
  EXPECT_NE(format_of("RuntimeError: CUDA failed with error out of memory\n"), "");
  EXPECT_EQ(format_of("  data = numpy.frombuffer(buf)\nMemoryError\n"), "host_allocation");
  EXPECT_EQ(format_of("Cannot allocate memory\n"), "host_allocation");
  EXPECT_EQ(format_of("except MemoryError as error:\n"), "") << "code";
  EXPECT_EQ(format_of("MemoryError: Unable to allocate 926. GiB for an array with shape (6794880, 36601) and data type "
                      "float32\n"),
            "numpy");
  EXPECT_EQ(format_of("RuntimeError: unable to mmap 33484977464 bytes\n"), "cpu_mmap");
  EXPECT_EQ(format_of("unable to mmap 497 bytes from file </model.bin>: Cannot allocate memory (12)\n"), "cpu_mmap");
  EXPECT_EQ(format_of("unable to mmap 497 bytes from file </model.bin>: Invalid argument (22)\n"), "");
  EXPECT_EQ(format_of("Your session crashed after using all available RAM.\n"), "notebook");
  EXPECT_EQ(format_of("Your notebook tried to allocate more memory than is available. It has restarted.\n"),
            "notebook");
  EXPECT_EQ(format_of("CPU Virtual Memory:  used = 60.5 GB, percent = 96.4%\n"), "virtual_memory");
  EXPECT_EQ(format_of("CPU Virtual Memory:  used = 20.5 GB, percent = 31.4%\n"), "") << "there is room";
  EXPECT_EQ(format_of("F0911 10:23:46.5 1824 syncedmem.cpp:71] Check failed: error == cudaSuccess (2 vs. 0)  out of "
                      "memory\n"),
            "cuda_driver");
  EXPECT_EQ(format_of("RuntimeError: Failed to determine best cudnn convolution algorithm for:\n"), "xla_no_algorithm");
}

TEST(HostMessages, TheExcerptHasBothEndsOfALog) {
  std::string log = "first line\n";
  for (int i = 0; i < 20000; ++i) log += "an ordinary line of a log\n";
  log += "last line\n";
  const LogReport report = scan_log(log);
  EXPECT_EQ(report.excerpt.rfind("first line", 0), 0u);
  EXPECT_NE(report.excerpt.find("last line"), std::string::npos);
  EXPECT_LE(report.excerpt.size(), 2 * LogScanner::kExcerpt + 1);
}

}  // namespace
}  // namespace headroom::doctor
