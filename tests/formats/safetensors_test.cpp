#include "formats/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "expect_error.h"
#include "formats/atomic_dir.h"
#include "formats/safetensors_writer.h"
#include "temporary_directory.h"

namespace headroom {
namespace {

std::string file_of(const std::string& header, const std::string& data, int64_t lie = 0) {
  const uint64_t length = header.size() + static_cast<uint64_t>(lie);
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + data;
}

std::vector<std::byte> bytes_of(size_t count, int start) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(static_cast<size_t>(start) + i * 7);
  return bytes;
}

TEST(Safetensors, WhatIsWrittenIsRead) {
  TemporaryDirectory directory;
  const auto a = bytes_of(24, 1), b = bytes_of(6, 99);
  {
    SafetensorsWriter writer(directory / "model.safetensors");
    writer.declare("z.weight", StoredType::f32, {2, 3});
    writer.declare("empty", StoredType::f32, {0, 5});
    writer.declare("a \"quoted\" name", StoredType::bf16, {3});
    const int64_t bytes = writer.file_bytes();
    writer.write("z.weight", std::span(a).first(5));
    writer.write("z.weight", std::span(a).subspan(5));
    writer.write("a \"quoted\" name", b);
    writer.finish();
    EXPECT_EQ(static_cast<int64_t>(std::filesystem::file_size(directory / "model.safetensors")), bytes);
  }
  const auto file = SafetensorsFile::open(directory / "model.safetensors");
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors().begin()->first, "a \"quoted\" name");
  EXPECT_NE(read_text(file.path()).find(R"({"__metadata__":{"format":"pt"},)"), std::string::npos);
  const StoredTensor& z = *file.find("z.weight");
  EXPECT_EQ(z.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(z.type, StoredType::f32);
  EXPECT_EQ(z.offset % 8, 0);
  EXPECT_EQ(z.elements(), 6);
  EXPECT_EQ(file.find("empty")->bytes, 0);
  std::vector<std::byte> got(24);
  file.read("z.weight", 0, got);
  EXPECT_EQ(got, a);
  std::vector<std::byte> part(4);
  file.read("a \"quoted\" name", 2, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), b.begin() + 2));
  expect_error(ErrorKind::format, "has no tensor 'y'", [&] { file.read("y", 0, part); });
  EXPECT_THROW(file.read("a \"quoted\" name", 3, part), InternalError);
}

TEST(Safetensors, AnUnfinishedFileIsRemoved) {
  TemporaryDirectory directory;
  {
    SafetensorsWriter writer(directory / "x.safetensors");
    writer.declare("a", StoredType::u8, {4});
    writer.write("a", bytes_of(2, 0));
    EXPECT_TRUE(std::filesystem::exists(temporary_beside(directory / "x.safetensors")));
    EXPECT_FALSE(std::filesystem::exists(directory / "x.safetensors"));
    EXPECT_THROW(writer.finish(), InternalError);
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Safetensors, WritingOutOfOrderOrTooMuchIsAnInvariant) {
  TemporaryDirectory directory;
  SafetensorsWriter writer(directory / "x.safetensors");
  writer.declare("a", StoredType::u8, {4});
  writer.declare("b", StoredType::u8, {4});
  EXPECT_THROW(writer.write("b", bytes_of(2, 0)), InternalError);
  writer.write("a", bytes_of(4, 0));
  EXPECT_THROW(writer.write("a", bytes_of(1, 0)), InternalError);
  EXPECT_THROW(writer.declare("c", StoredType::u8, {1}), InternalError);
}

struct Hostile {
  const char* name;
  std::string file;
  const char* message;
};

TEST(Safetensors, HostileFilesAreRefusedByName) {
  const std::string one = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  const auto with = [](const std::string& tensors) { return "{" + tensors + "}"; };
  const auto tensor = [](const std::string& name, const std::string& shape, const std::string& offsets,
                         const std::string& dtype = "U8") {
    return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
  };
  const std::vector<Hostile> cases = {
      {"empty", "", "has 0 bytes"},
      {"short", "1234567", "has 7 bytes"},
      {"length lies", file_of(one, "abcd", 1000), "announces a header of 1053 bytes but has only 57"},
      {"length huge", std::string(8, '\xff') + "{}", "more than the limit"},
      {"length zero", std::string(8, '\0'), "does not begin with '{'"},
      {"not json", file_of("hello", ""), "does not begin with '{'"},
      {"malformed", file_of("{\"a\":", ""), "malformed header at byte"},
      {"trailing", file_of(one + "x", "abcd"), "malformed header at byte"},
      {"zero byte", file_of(one + std::string("\0{", 2), "abcd"), "malformed header at byte 61: a zero byte"},
      {"not utf-8", file_of("{\"a\xff\":{}}", ""), "malformed header"},
      {"truncated data", file_of(one, "abc"), "tensor 'a' ends at data offset 4, the file has only 3"},
      {"left over", file_of(one, "abcde"), "the tensors end at data offset 4, the file has 5"},
      {"unknown dtype", file_of(with(tensor("a", "[4]", "[0,4]", "F8_E4M3")), "abcd"),
       "tensor 'a' has the unknown dtype 'F8_E4M3'"},
      {"size", file_of(with(tensor("a", "[5]", "[0,4]")), "abcd"),
       "has 4 bytes at data_offsets [0, 4], its shape and dtype need 5"},
      {"negative shape", file_of(with(tensor("a", "[-4]", "[0,4]")), "abcd"),
       "tensor 'a' has the negative value -4 in shape"},
      {"fraction", file_of(with(tensor("a", "[4.5]", "[0,4]")), "abcd"), "has the value 4.5 in shape"},
      {"overflow", file_of(with(tensor("a", "[4294967296,4294967296]", "[0,4]")), "abcd"), "shape that overflows"},
      {"too large", file_of(with(tensor("a", "[18446744073709551615]", "[0,4]")), "abcd"), "too large"},
      {"backwards", file_of(with(tensor("a", "[4]", "[4,0]")), "abcd"), "run backwards"},
      {"one offset", file_of(with(tensor("a", "[4]", "[4]")), "abcd"), "has 1 data_offsets, not 2"},
      {"three offsets", file_of(with(tensor("a", "[4]", "[0,4,4]")), "abcd"), "has 3 data_offsets, not 2"},
      {"twice", file_of(with(tensor("a", "[2]", "[0,2]") + "," + tensor("a", "[2]", "[2,4]")), "abcd"),
       "tensor 'a' is listed twice"},
      {"overlap", file_of(with(tensor("a", "[3]", "[0,3]") + "," + tensor("b", "[2]", "[2,4]")), "abcd"),
       "tensor 'b' begins at data offset 2, an overlap"},
      {"hole", file_of(with(tensor("a", "[1]", "[0,1]") + "," + tensor("b", "[2]", "[2,4]")), "abcd"),
       "tensor 'b' begins at data offset 2, after a hole"},
      {"no dtype", file_of(R"({"a":{"shape":[4],"data_offsets":[0,4]}})", "abcd"), "tensor 'a' lacks its dtype"},
      {"no shape", file_of(R"({"a":{"dtype":"U8","data_offsets":[0,4]}})", "abcd"), "tensor 'a' lacks its shape"},
      {"unknown key", file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"x":1}})", "abcd"),
       "tensor 'a' has an unknown key 'x'"},
      {"key twice", file_of(R"({"a":{"dtype":"U8","dtype":"U8"}})", ""), "has the key 'dtype' twice"},
      {"number for a tensor", file_of(R"({"a":4})", ""), "has the number 4 where none belongs"},
      {"nested", file_of(R"({"a":{"dtype":{}}})", ""), "object where none belongs"},
      {"deep lists", file_of("{\"a\":{\"shape\":[[1]]}}", ""), "list where none belongs"},
      {"many dimensions", file_of(with(tensor("a", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]")), "a"),
       "more than 16 dimensions"},
      {"metadata number", file_of(R"({"__metadata__":{"a":1}})", ""), "__metadata__ has the number 1"},
      {"metadata twice", file_of(R"({"__metadata__":{},"__metadata__":{}})", ""), "__metadata__ is listed twice"},
      {"empty name", file_of(with(tensor("", "[0]", "[0,0]")), ""), "empty name"},
  };
  TemporaryDirectory directory;
  for (const Hostile& hostile : cases) {
    SCOPED_TRACE(hostile.name);
    const auto path = directory.write("x.safetensors", hostile.file);
    expect_error(ErrorKind::format, hostile.message, [&] { SafetensorsFile::open(path); });
    expect_error(ErrorKind::format, path.string(), [&] { SafetensorsFile::open(path); });
  }
}

TEST(Safetensors, AnEmptyCheckpointAndPaddingAreLegal) {
  TemporaryDirectory directory;
  EXPECT_TRUE(SafetensorsFile::open(directory.write("a", file_of("{}      ", ""))).tensors().empty());
}

TEST(Safetensors, MissingFilesAndDirectoriesAreUsageErrors) {
  TemporaryDirectory directory;
  expect_error(ErrorKind::usage, "nowhere", [&] { SafetensorsFile::open(directory / "nowhere"); });
  expect_error(ErrorKind::usage, "is a directory", [&] { SafetensorsFile::open(directory.path()); });
}

TEST(Safetensors, ATensorThatLiesBeyondAFileCutLaterIsAFormatError) {
  TemporaryDirectory directory;
  const auto path = directory.write("x", file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "abcd"));
  const auto file = SafetensorsFile::open(path);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 2);
  std::vector<std::byte> got(4);
  expect_error(ErrorKind::format, "bytes were expected", [&] { file.read("a", 0, got); });
}

TEST(Safetensors, ReadsWhatTransformersWrote) {
  const auto set = SafetensorsSet::open(HEADROOM_SOURCE_DIR "/tests/oracle/llama_gqa_tied/model");
  EXPECT_EQ(set.at("model.embed_tokens.weight").shape, (std::vector<int64_t>{131, 48}));
  EXPECT_EQ(set.find("lm_head.weight"), nullptr);
  EXPECT_GT(set.total_bytes(), 100000);
}

}  // namespace
}  // namespace headroom
