#include "formats/gguf_header.h"

#include <gtest/gtest.h>

#include "expect_error.h"
#include "gguf_bytes.h"

namespace headroom {
namespace {

GgufHeader header_of(const std::string& file) { return parse_gguf_header(GgufBytes::source(file)); }
void expect_header_refused(const std::string& file, const std::string& part) {
  expect_error(ErrorKind::format, part, [&] { header_of(file); });
}

GgufBytes small() {
  GgufBytes file;
  file.words("general.architecture", "llama")
      .number("llama.block_count", uint32_t{2})
      .number("llama.epsilon", 0.5f)
      .entry("flag", 7, std::string(1, '\1'))
      .entry("below", 5, GgufBytes::raw(int32_t{-3}))
      .entry("large", 10, GgufBytes::raw(uint64_t{1} << 40))
      .list("tokens", {"a", "", "long word"})
      .entry("types", 9,
             GgufBytes::raw(uint32_t{5}) + GgufBytes::raw(uint64_t{2}) + GgufBytes::raw(int32_t{7}) +
                 GgufBytes::raw(int32_t{-1}))
      .tensor("norm", {3}, 0, std::string(12, '\2'))
      .tensor("matrix", {32, 2}, 8, std::string(68, '\3'));
  return file;
}

TEST(GgufHeader, SaysWhatTheFileHolds) {
  const std::string file = small().file();
  const GgufHeader header = header_of(file);
  EXPECT_EQ(header.values.at("general.architecture"), "llama");
  EXPECT_EQ(header.values.at("llama.block_count"), 2);
  EXPECT_EQ(header.values.at("llama.epsilon"), 0.5);
  EXPECT_EQ(header.values.at("flag"), true);
  EXPECT_EQ(header.values.at("below"), -3);
  EXPECT_EQ(header.values.at("large"), int64_t{1} << 40);
  ASSERT_EQ(header.tensors.size(), 2u);
  const GgufTensor& matrix = *header.find("matrix");
  EXPECT_EQ(matrix.shape, (std::vector<int64_t>{2, 32}));
  EXPECT_EQ(matrix.type, GgmlType::q8_0);
  EXPECT_EQ(matrix.bytes, 68);
  EXPECT_EQ(matrix.offset + matrix.bytes, static_cast<int64_t>(file.size()));
  EXPECT_EQ(header.find("nothing"), nullptr);
}

TEST(GgufHeader, ArraysAreReadOnDemand) {
  const std::string file = small().file();
  const ByteSource source = GgufBytes::source(file);
  const GgufHeader header = parse_gguf_header(source);
  std::vector<std::string> tokens;
  each_gguf_text(source, header.arrays.at("tokens"),
                 [&](int64_t, std::string_view text) { tokens.emplace_back(text); });
  EXPECT_EQ(tokens, (std::vector<std::string>{"a", "", "long word"}));
  std::vector<double> types;
  each_gguf_number(source, header.arrays.at("types"), [&](int64_t, double number) { types.push_back(number); });
  EXPECT_EQ(types, (std::vector<double>{7, -1}));
  expect_error(ErrorKind::format, "not texts",
               [&] { each_gguf_text(source, header.arrays.at("types"), [](int64_t, std::string_view) {}); });
  expect_error(ErrorKind::format, "not numbers",
               [&] { each_gguf_number(source, header.arrays.at("tokens"), [](int64_t, double) {}); });
}

// Every prefix of the file. The source's memory ends where the file does, which the sanitizers check.
TEST(GgufHeader, AnyTruncationIsRefused) {
  const std::string file = small().file();
  for (size_t size = 0; size < file.size(); ++size) {
    const std::string cut = std::string(file.data(), size);
    EXPECT_THROW(header_of(cut), Error) << size;
  }
}

TEST(GgufHeader, NamesTensorAndOffsetOfWhatIsWrong) {
  const std::string zeros(64, '\0');
  expect_header_refused(GgufBytes().tensor_at("t", {16}, 0, 0).file(),
                        "tensor 't' of 64 bytes ends beyond the file's 64 bytes, at byte 64");
  expect_header_refused(GgufBytes().tensor("t", {8}, 0, zeros).tensor_at("u", {8}, 0, 4).file(),
                        "'u' has an offset that is not a multiple of 32");
  expect_header_refused(GgufBytes().tensor("t", {16}, 0, zeros).tensor_at("u", {8}, 0, 32).file(), "'u' overlaps 't'");
  expect_header_refused(GgufBytes().tensor("t", {8}, 0, zeros).tensor_at("t", {8}, 0, 32).file(), "'t' appears twice");
  expect_header_refused(GgufBytes().tensor_at("t", {16}, 0, ~uint64_t{0} - 31).file(), "'t' has offset");
  expect_header_refused(GgufBytes().tensor_at("t", {~uint64_t{0}}, 0, 0).file(), "'t' has a dimension of");
  expect_header_refused(GgufBytes().tensor_at("t", {uint64_t{1} << 40, uint64_t{1} << 40}, 0, 0).file(),
                        "'t' has a dimension of");
  expect_header_refused(GgufBytes().tensor_at("t", {0}, 0, 0).file(), "'t' has a dimension of 0");
  expect_header_refused(GgufBytes().tensor_at("t", {}, 0, 0).file(), "'t' has 0 dimensions");
  expect_header_refused(GgufBytes().tensor_at("t", {1, 1, 1, 1, 1}, 0, 0).file(), "'t' has 5 dimensions");
  expect_header_refused(GgufBytes().tensor_at("t", {33}, 8, 0).file(), "Q8_0 with rows of 33 elements");
  expect_header_refused(GgufBytes().tensor_at("t", {256}, 13, 0).file(), "tensor 't' is Q5_K, at byte 24");
  expect_header_refused(GgufBytes().tensor_at(std::string(200, 'n'), {1}, 0, 0).file(), "200 bytes of text");
}

TEST(GgufHeader, RefusesMetadataThatCannotBe) {
  const auto raw64 = [](uint64_t value) { return GgufBytes::raw(value); };
  expect_header_refused("GGUX" + std::string(20, '\0'), "not a GGUF");
  expect_header_refused(GgufBytes(1).file(), "version 1");
  expect_header_refused(GgufBytes(0x03000000).file(), "big-endian");
  std::string counts = GgufBytes().file();
  counts.replace(8, 8, raw64(~uint64_t{0}));
  expect_header_refused(counts, "tensors, at byte 8");
  counts = GgufBytes().file();
  counts.replace(16, 8, raw64(uint64_t{1} << 20));
  expect_header_refused(counts, "metadata entries, at byte 16");
  expect_header_refused(GgufBytes().entry("k", 13, "").file(), "'k' has type 13");
  expect_header_refused(GgufBytes().entry("k", 8, raw64(uint64_t{1} << 62)).file(), "'k' announces");
  expect_header_refused(GgufBytes().entry("k", 9, GgufBytes::raw(uint32_t{9}) + raw64(1)).file(), "array of arrays");
  expect_header_refused(GgufBytes().entry("k", 9, GgufBytes::raw(uint32_t{12}) + raw64(uint64_t{1} << 61)).file(),
                        "elements");
  expect_header_refused(GgufBytes().entry("k", 9, GgufBytes::raw(uint32_t{8}) + raw64(1) + raw64(~uint64_t{0})).file(),
                        "of text");
  expect_header_refused(GgufBytes().number("k", uint32_t{1}).number("k", uint32_t{2}).file(), "'k' appears twice");
  expect_header_refused(GgufBytes().number("general.alignment", uint32_t{24}).file(), "alignment is 24");
  expect_header_refused(GgufBytes().number("general.alignment", uint32_t{0}).file(), "alignment is 0");
}

}  // namespace
}  // namespace headroom
