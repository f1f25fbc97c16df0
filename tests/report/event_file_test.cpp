// Event files byte for byte: framing, checksums and the protocol buffers inside.
#include "train/event_file.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

struct Directory {
  fs::path path = fs::temp_directory_path() / ("headroom-events-" + std::to_string(::getpid()));
  Directory() { fs::remove_all(path); }
  ~Directory() { fs::remove_all(path); }
};

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

uint32_t masked(std::string_view bytes) {
  const uint32_t crc = crc32c(std::as_bytes(std::span(bytes)));
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

// The records of the only file in a directory, with checksums verified.
std::vector<std::string> records_of(const fs::path& directory) {
  const fs::path file = fs::directory_iterator(directory)->path();
  EXPECT_TRUE(file.filename().string().starts_with("events.out.tfevents.")) << file;
  std::ifstream in(file, std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(in)), {});
  std::vector<std::string> records;
  for (size_t at = 0; at < all.size();) {
    const std::string_view rest = std::string_view(all).substr(at);
    const size_t size = little_endian(rest.substr(0, 8));
    EXPECT_EQ(little_endian(rest.substr(8, 4)), masked(rest.substr(0, 8)));
    EXPECT_EQ(little_endian(rest.substr(12 + size, 4)), masked(rest.substr(12, size)));
    records.emplace_back(rest.substr(12, size));
    at += 16 + size;
  }
  return records;
}

// The fields of a message: number -> contents as bytes.
std::multimap<uint64_t, std::string> fields_of(std::string_view text) {
  std::multimap<uint64_t, std::string> fields;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const uint8_t byte = static_cast<uint8_t>(text[at++]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < text.size()) {
    const uint64_t key = varint();
    if ((key & 7) == 0) {
      fields.emplace(key >> 3, std::to_string(varint()));
      continue;
    }
    const size_t size = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : varint();
    fields.emplace(key >> 3, text.substr(at, size));
    at += size;
  }
  return fields;
}

TEST(EventFile, ChecksumIsCastagnolis) {
  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::as_bytes(std::span(std::string_view("123456789")))), 0xe3069283u);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32)), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43u);
}

TEST(EventFile, ScalarsReadBack) {
  const Directory directory;
  {
    EventFile file(directory.path, 1);
    const Scalar first[] = {{"train/loss", 4.5}, {"train/memory_mib", 107.25}};
    file.scalars(1, first);
    const Scalar second[] = {{"eval/loss", 0.1}};
    file.scalars(int64_t{1} << 40, second);
  }
  const std::vector<std::string> records = records_of(directory.path);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(fields_of(records[0]).find(3)->second, "brain.Event:2");
  const auto event = fields_of(records[1]);
  EXPECT_EQ(event.find(2)->second, "1");
  EXPECT_GT(std::bit_cast<double>(little_endian(event.find(1)->second)), 1.6e9);
  const auto summary = fields_of(event.find(5)->second);
  ASSERT_EQ(summary.count(1), 2u);
  const auto value = fields_of(summary.lower_bound(1)->second);
  EXPECT_EQ(value.find(1)->second, "train/loss");
  EXPECT_EQ(std::bit_cast<float>(static_cast<uint32_t>(little_endian(value.find(2)->second))), 4.5f);
  EXPECT_EQ(fields_of(records[2]).find(2)->second, std::to_string(int64_t{1} << 40));
}

TEST(EventFile, AResumedRunForgetsWhatIsRepeated) {
  const Directory directory;
  { EventFile file(directory.path, 7); }
  const std::vector<std::string> records = records_of(directory.path);
  ASSERT_EQ(records.size(), 2u);
  const auto event = fields_of(records[1]);
  EXPECT_EQ(event.find(2)->second, "7");
  EXPECT_EQ(fields_of(event.find(7)->second).find(1)->second, "1");
}

TEST(EventFile, ADirectoryThatCannotBeMade) {
  const Directory directory;
  { std::ofstream(directory.path) << "a file"; }
  try {
    EventFile file(directory.path, 1);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::run);
    EXPECT_NE(std::string(e.what()).find(directory.path.string()), std::string::npos);
  }
}

}  // namespace
}  // namespace headroom
