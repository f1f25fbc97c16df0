#include "memory/buffers_csv.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/error.h"

namespace headroom {
namespace {

std::string complaint(const std::string& text) {
  try {
    parse_buffers_csv(text, "f.csv");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::format);
    EXPECT_FALSE(error.remedy().empty());
    return error.what();
  }
  return "accepted";
}

TEST(PackingCsv, ReadsColumnsInAnyOrder) {
  const auto buffers =
      parse_buffers_csv("size,id,upper,lower,offset\r\n 10 ,3,9,2,\r\n\r\n0,4,4611686018427387904,0,64", "f.csv");
  ASSERT_EQ(buffers.size(), 2U);
  EXPECT_EQ(buffers[0].id, 3);
  EXPECT_EQ(buffers[0].lower, 2);
  EXPECT_EQ(buffers[0].upper, 9);
  EXPECT_EQ(buffers[0].size, 10);
  EXPECT_EQ(buffers[0].pinned_offset, -1);
  EXPECT_EQ(buffers[1].upper, int64_t{1} << 62);
  EXPECT_EQ(buffers[1].pinned_offset, 64);
  EXPECT_TRUE(parse_buffers_csv("id,lower,upper,size\n", "f.csv").empty());
}

TEST(PackingCsv, NamesTheLineAndTheValue) {
  EXPECT_EQ(complaint(""), "f.csv: line 0: the file is empty");
  EXPECT_EQ(complaint("id,lower,upper\n"), "f.csv: line 1: column size is missing");
  EXPECT_EQ(complaint("id,lower,upper,size,id\n"), "f.csv: line 1: column id appears twice");
  EXPECT_EQ(complaint("id,lower,upper,bytes\n"), "f.csv: line 1: unknown column \"bytes\"");
  const std::string header = "id,lower,upper,size\n";
  EXPECT_EQ(complaint(header + "0,1,2\n"), "f.csv: line 2: 3 fields for 4 columns");
  EXPECT_EQ(complaint(header + "0,1,2,3,4\n"), "f.csv: line 2: more than 4 fields");
  EXPECT_EQ(complaint(header + "0,0,1,1\n1,5,5,3\n"), "f.csv: line 3: upper 5 is not above lower 5");
  EXPECT_EQ(complaint(header + "0,0,1,1\n\n0,5,6,3\n"), "f.csv: line 4: id 0 was used before in line 2");
  for (const std::string bad :
       {"", "-1", "+1", "1.5", "0x10", "1e3", "4611686018427387905", "99999999999999999999", "7 7", "nan"}) {
    EXPECT_EQ(complaint(header + "0,0,1," + bad),
              "f.csv: line 2: size \"" + bad + "\" is not a whole number from 0 to 2^62");
  }
}

TEST(PackingCsv, ShowsHostileTextSafely) {
  const std::string text =
      complaint("id,lower,upper,size\n" + std::string("\x1b[31m\0", 6) + std::string(1000, 'x') + ",0,1,1\n");
  EXPECT_LT(text.size(), 200U);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\0'), std::string::npos);
}

TEST(PackingCsv, WritesWhatItReads) {
  const std::vector<Buffer> buffers = {{5, 0, 9, 100, -1}, {6, 3, 4, 7, -1}};
  std::ostringstream problem;
  write_buffers_csv(problem, buffers);
  EXPECT_EQ(problem.str(), "id,lower,upper,size\n5,0,9,100\n6,3,4,7\n");
  const OffsetAssignment assignment{{0, 128}, 192};
  std::ostringstream solution;
  write_buffers_csv(solution, buffers, &assignment);
  EXPECT_EQ(solution.str(), "id,lower,upper,size,offset\n5,0,9,100,0\n6,3,4,7,128\n");
  EXPECT_EQ(parse_buffers_csv(solution.str(), "f.csv")[1].pinned_offset, 128);
}

TEST(PackingCsv, ReadsFilesAndNamesMissingOnes) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "headroom_packing_csv_test.csv";
  std::ofstream(path) << "id,lower,upper,size\n1,2,3,4\n";
  EXPECT_EQ(read_buffers_csv(path).size(), 1U);
  std::filesystem::remove(path);
  try {
    read_buffers_csv(path);
    FAIL() << "read a missing file";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos);
  }
  EXPECT_THROW(read_buffers_csv(::testing::TempDir()), Error);
}

}  // namespace
}  // namespace headroom
