#include <gtest/gtest.h>

#include "expect_error.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"
#include "temporary_directory.h"

namespace headroom {
namespace {

void write_shard(const std::filesystem::path& path, const std::vector<std::string>& names, uint8_t value) {
  SafetensorsWriter writer(path);
  for (const auto& name : names) writer.declare(name, StoredType::u8, {2});
  const std::vector<std::byte> data(2, static_cast<std::byte>(value));
  for (const auto& name : names) writer.write(name, data);
  writer.finish();
}

constexpr const char* kIndex = "model.safetensors.index.json";

TEST(SafetensorsSet, ReadsShards) {
  TemporaryDirectory directory;
  write_shard(directory / "m-1.safetensors", {"b", "a"}, 1);
  write_shard(directory / "m-2.safetensors", {"c"}, 2);
  directory.write(
      kIndex,
      R"({"metadata":{"total_size":6},"weight_map":{"a":"m-1.safetensors","b":"m-1.safetensors","c":"m-2.safetensors"}})");
  const auto set = SafetensorsSet::open(directory.path());
  ASSERT_EQ(set.tensors().size(), 3u);
  EXPECT_EQ(set.total_bytes(), 6);
  std::array<std::byte, 1> got{};
  set.read("c", 1, got);
  EXPECT_EQ(got[0], std::byte{2});
  set.read("a", 0, got);
  EXPECT_EQ(got[0], std::byte{1});
  expect_error(ErrorKind::format, "no tensor 'd'", [&] { set.at("d"); });
}

TEST(SafetensorsSet, NamesWhatIsMissingOrDouble) {
  TemporaryDirectory directory;
  const auto open = [&] { SafetensorsSet::open(directory.path()); };
  expect_error(ErrorKind::usage, "has neither", open);
  expect_error(ErrorKind::usage, "is not a directory", [&] { SafetensorsSet::open(directory / "none"); });
  directory.write("pytorch_model.bin", "");
  expect_error(ErrorKind::usage, "holds pytorch_model.bin", open);
  directory.write(kIndex, R"({"weight_map":{"a":"m-1","b":"m-2"}})");
  write_shard(directory / "m-1", {"a"}, 1);
  expect_error(ErrorKind::format, "the shard m-2 is missing", open);
  write_shard(directory / "m-2", {"a"}, 1);
  expect_error(ErrorKind::format, "tensor 'a' is both in m-1 and in m-2", open);
  write_shard(directory / "m-2", {"x"}, 1);
  expect_error(ErrorKind::format, "tensor 'b' is not in m-2", open);
  write_shard(directory / "m-1", {"b"}, 1);
  expect_error(ErrorKind::format, "tensor 'b' is listed in m-2 but is in m-1", open);
  directory.write("model.safetensors", "x");
  expect_error(ErrorKind::format, "has 1 bytes", open);
}

TEST(SafetensorsSet, HostileIndexesAreRefused) {
  TemporaryDirectory directory;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[]", "no object weight_map"},
      {"{}", "no object weight_map"},
      {R"({"weight_map":{}})", "weight_map is empty"},
      {R"({"weight_map":{"a":1}})", "weight_map of 'a' is not a string"},
      {R"({"weight_map":{"a":"../../secret"}})", "not the name of a file next to it"},
      {R"({"weight_map":{"a":".."}})", "not the name of a file next to it"},
      {R"({"weight_map":)", "malformed JSON"},
  };
  for (const auto& [index, message] : cases) {
    directory.write(kIndex, index);
    expect_error(ErrorKind::format, message, [&] { SafetensorsSet::open(directory.path()); });
  }
}

}  // namespace
}  // namespace headroom
