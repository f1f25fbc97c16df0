#include "formats/gguf_writer.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "formats/gguf_file.h"
#include "temporary_directory.h"

namespace headroom {
namespace {

TEST(GgufWriter, WhatIsWrittenIsRead) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory / "model.gguf";
  std::vector<float> norm(3), matrix(128);
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i) / 8;
  std::vector<std::byte> blocks(4 * 34);
  encode_blocks(GgmlType::q8_0, matrix, blocks.data());
  {
    GgufWriter writer(path);
    writer.put("general.architecture", std::string_view("llama"));
    writer.put("count", uint32_t{7});
    writer.put("rate", 0.5f);
    writer.put("flag", true);
    const std::vector<std::string> words{"a", "", "word"};
    const std::vector<int32_t> types{1, -1};
    const std::vector<float> scores{0.25f};
    writer.put("words", std::span<const std::string>(words));
    writer.put("types", std::span<const int32_t>(types));
    writer.put("scores", std::span<const float>(scores));
    writer.declare("norm", GgmlType::f32, {3});
    writer.declare("matrix", GgmlType::q8_0, {2, 64});
    writer.write("norm", std::as_bytes(std::span(norm)));
    writer.write("matrix", std::span(blocks).first(50));
    writer.write("matrix", std::span(blocks).subspan(50));
    EXPECT_FALSE(std::filesystem::exists(path));
    writer.finish();
  }
  EXPECT_EQ(std::filesystem::file_size(path) % 32, 0u);
  const GgufFile file = GgufFile::open(path);
  const GgufHeader& header = file.header();
  EXPECT_EQ(header.values.at("general.architecture"), "llama");
  EXPECT_EQ(header.values.at("count"), 7);
  EXPECT_EQ(header.values.at("rate"), 0.5);
  EXPECT_EQ(header.values.at("flag"), true);
  std::vector<std::string> words;
  each_gguf_text(file.source(), header.arrays.at("words"),
                 [&](int64_t, std::string_view word) { words.emplace_back(word); });
  EXPECT_EQ(words, (std::vector<std::string>{"a", "", "word"}));
  std::vector<double> numbers;
  const auto take = [&](int64_t, double number) { numbers.push_back(number); };
  each_gguf_number(file.source(), header.arrays.at("types"), take);
  each_gguf_number(file.source(), header.arrays.at("scores"), take);
  EXPECT_EQ(numbers, (std::vector<double>{1, -1, 0.25}));
  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.find("matrix")->shape, (std::vector<int64_t>{2, 64}));
  std::vector<std::byte> read(blocks.size());
  file.read(*header.find("matrix"), 0, read);
  EXPECT_EQ(read, blocks);
  std::vector<float> first;
  file.each_block(*header.find("matrix"), 40, 70,
                  [&](const std::byte*, int64_t at) { first.push_back(static_cast<float>(at)); });
  EXPECT_EQ(first, (std::vector<float>{32, 64}));
}

TEST(GgufWriter, AnUnfinishedFileIsRemoved) {
  const TemporaryDirectory directory;
  {
    GgufWriter writer(directory / "model.gguf");
    writer.declare("norm", GgmlType::f32, {3});
    const float norm[2]{};
    writer.write("norm", std::as_bytes(std::span(norm)));
    EXPECT_THROW(writer.finish(), InternalError);
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

}  // namespace
}  // namespace headroom
