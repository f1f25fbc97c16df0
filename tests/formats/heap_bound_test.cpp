// Headers and indexes of any length take at most the memory booked for them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "base/error.h"
#include "counted_heap.h"
#include "formats/atomic_dir.h"
#include "formats/gguf_weights.h"
#include "formats/safetensors.h"
#include "formats/safetensors_header.h"
#include "formats/safetensors_index.h"
#include "formats/safetensors_writer.h"
#include "gguf_bytes.h"
#include "temporary_directory.h"

namespace headroom {
namespace {

constexpr int64_t kSlack = 64 << 10;  // messages, the parser itself

std::string repeated(const std::string& begin, int count, const std::function<std::string(int)>& item) {
  std::string text = begin;
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + item(i);
  return text;
}

TEST(HeapBound, HeadersTakeNoMoreThanIsBooked) {
  const auto tensor = [](const std::string& name, const std::string& shape) {
    return fmt::format(R"("{}":{{"dtype":"U8","shape":[{}],"data_offsets":[0,0]}})", name, shape);
  };
  const std::string dims = "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0";
  const std::string long_text(1'000'000, 'x');
  const std::string texts[] = {
      repeated("{", 40'000, [&](int i) { return tensor(std::to_string(i), "0"); }) + "}",
      repeated("{", 40'000,
               [&](int i) { return tensor(fmt::format("model.layers.{}.mlp.down_proj.weight", i), "0,1"); }) +
          "}",
      repeated("{", 40'000, [&](int i) { return tensor(std::to_string(i), dims); }) + "}",
      repeated(R"({"__metadata__":{)", 200'000, [](int i) { return fmt::format(R"("{:x}":"")", i); }) + "}}",
      R"({"__metadata__":{"a":")" + long_text + "\"}}",
      "{" + tensor(long_text, "0") + "}",
      "{" + std::string(1'000'000, ' ') + "}"};
  for (const std::string& text : texts) {
    SCOPED_TRACE(text.substr(0, 60));
    const int64_t peak = counted_heap::peak_of([&] {
      JsonCharacters characters(text);
      parse_safetensors_header(characters, 0, 0, "f");
    });
    EXPECT_LE(peak, kHeaderFactor * static_cast<int64_t>(text.size()) + kSlack);
  }
}

TEST(HeapBound, AFilesHeaderIsReadPieceByPiece) {
  const TemporaryDirectory directory;
  const std::string spaces(1000, ' ');
  std::string header = repeated(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"__metadata__":{)", 20'000,
                                [&](int i) { return fmt::format(R"("{}":{}"")", i, spaces); }) +
                       "}}";
  const auto length = static_cast<int64_t>(header.size());
  header.insert(0, 8, '\0');
  std::memcpy(header.data(), &length, 8);
  const std::filesystem::path path = directory.write("model.safetensors", header);
  size_t tensors = 0;
  EXPECT_LE(counted_heap::peak_of([&] { tensors = SafetensorsFile::open(path).tensors().size(); }), int64_t{1} << 20);
  EXPECT_EQ(tensors, 1u);
  EXPECT_EQ(SafetensorsFile::table_bytes(path), length * kHeaderFactor);
  EXPECT_EQ(SafetensorsSet::table_bytes(directory.path()), length * kHeaderFactor);
  EXPECT_THROW(SafetensorsFile::open(path, length - 1), Error);
}

TEST(HeapBound, AnIndexIsNotHeld) {
  const TemporaryDirectory directory;
  const std::string text =
      repeated(R"({"weight_map":{)", 200'000,
               [](int i) { return fmt::format(R"("model.layers.{}.mlp.weight":"model-{}.safetensors")", i, i % 4); }) +
      "}}";
  const std::filesystem::path index = directory.write("model.safetensors.index.json", text);
  std::vector<std::string> files;
  EXPECT_LE(counted_heap::peak_of([&] { files = files_of_index(index); }), kSlack);
  EXPECT_EQ(files.size(), 4u);
}

TEST(HeapBound, AWriterTakesNoMoreThanIsBookedForItsHeader) {
  const TemporaryDirectory directory;
  constexpr int kTensors = 20'000;
  const int64_t peak = counted_heap::peak_of([&] {
    SafetensorsWriter writer(directory / "model.safetensors");
    for (int i = 0; i < kTensors; ++i)
      writer.declare(fmt::format("model.layers.{}.mlp.experts.{}.down_proj.weight", i % 60, i), StoredType::f32,
                     {0, 64});
    writer.finish();
  });
  EXPECT_LE(peak, SafetensorsFile::table_bytes(directory / "model.safetensors") + kSlack);
  EXPECT_EQ(SafetensorsFile::open(directory / "model.safetensors").tensors().size(), size_t{kTensors});
}

TEST(HeapBound, ADirectorysNamesAreNotHeld) {
  const TemporaryDirectory directory;
  for (int i = 0; i < 5'000; ++i) directory.write(fmt::format("checkpoint-of-a-long-run-{}", i), "");
  directory.write("a.json.tmp-999999999", "");
  EXPECT_LE(counted_heap::peak_of([&] { recover_directories_in(directory.path()); }), kSlack);
  EXPECT_FALSE(std::filesystem::exists(directory / "a.json.tmp-999999999"));
}

TEST(HeapBound, GgufsTakeNoMoreThanIsBooked) {
  const TemporaryDirectory directory;
  GgufBytes file;
  file.words("general.architecture", "qwen2").words("chat", std::string(500'000, 'x'));
  for (int i = 0; i < 3000; ++i) file.number(fmt::format("a.metadata.key.of.some.length.{}", i), uint32_t{1});
  file.list("tokens", std::vector<std::string>(200'000, "token"));
  for (int i = 0; i < 3000; ++i) file.tensor(fmt::format("blk.{}.attn_output.weight", i), {1, 1, 1, 1}, 0, "data");
  const std::filesystem::path path = directory.write("model.gguf", file.file());
  size_t tensors = 0;
  const int64_t peak = counted_heap::peak_of([&] { tensors = SafetensorsSet::open(path).tensors().size(); });
  EXPECT_EQ(tensors, 3000u);
  EXPECT_LE(peak, SafetensorsSet::table_bytes(path) + kSlack);
  EXPECT_LT(SafetensorsSet::table_bytes(path), int64_t{12} << 20);
}

}  // namespace
}  // namespace headroom
