// A GGUF read as a model: config.json, and weights as in safetensors.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "base/block_codes.h"
#include "expect_error.h"
#include "formats/gguf_names.h"
#include "formats/gguf_weights.h"
#include "formats/hf_config.h"
#include "formats/safetensors.h"
#include "gguf_bytes.h"
#include "temporary_directory.h"

namespace headroom {
namespace {

constexpr int64_t kWidth = 64, kHeads = 2, kHeadRows = 8;

// Two heads of eight channels, with a hidden size of 64.
GgufBytes metadata() {
  GgufBytes file;
  file.words("general.architecture", "llama")
      .number("llama.embedding_length", uint32_t{kWidth})
      .number("llama.block_count", uint32_t{1})
      .number("llama.feed_forward_length", uint32_t{96})
      .number("llama.attention.head_count", uint32_t{kHeads})
      .number("llama.attention.key_length", uint32_t{kHeadRows})
      .number("llama.attention.value_length", uint32_t{kHeadRows})
      .number("llama.context_length", uint32_t{512})
      .number("llama.attention.layer_norm_rms_epsilon", 0x1p-16f)
      .number("llama.rope.dimension_count", uint32_t{kHeadRows});
  return file;
}

// Element i of a matrix before it is quantised.
float element(int64_t i) { return static_cast<float>((i * 37 + i / kWidth * 11) % 101 - 50) / 32; }

// Rows in the order of neighbouring pairs, stored as `type`.
std::string paired(GgmlType type) {
  std::vector<float> values;
  for (int64_t row = 0; row < kHeads * kHeadRows; ++row)
    for (int64_t column = 0; column < kWidth; ++column)
      values.push_back(element(halved_row(row, kHeadRows) * kWidth + column));
  std::string out(
      values.size() / static_cast<size_t>(ggml_block(type).elements) * static_cast<size_t>(ggml_block(type).bytes),
      '\0');
  encode_blocks(type, values, reinterpret_cast<std::byte*>(out.data()));
  return out;
}

std::filesystem::path write_model(const TemporaryDirectory& directory, GgmlType type) {
  const std::string q = paired(type);
  return directory.write(
      "model.gguf", metadata()
                        .tensor("token_embd.weight", {kWidth, 10}, 0, std::string(10 * kWidth * 4, '\0'))
                        .tensor("blk.0.attn_q.weight", {kWidth, kHeads * kHeadRows}, static_cast<uint32_t>(type), q)
                        .file());
}

TEST(GgufModel, MetadataIsTheConfig) {
  const TemporaryDirectory directory;
  const HfConfig config = HfConfig::read(write_model(directory, GgmlType::f16));
  EXPECT_EQ(config.model_type, "llama");
  EXPECT_EQ(config.architectures, (std::vector<std::string>{"LlamaForCausalLM"}));
  EXPECT_EQ(config.hidden_size(), kWidth);
  EXPECT_EQ(config.layers(), 1);
  EXPECT_EQ(config.kv_heads(), kHeads);
  EXPECT_EQ(config.head_dim(), kHeadRows);
  EXPECT_EQ(config.vocab_size(), 10);
  EXPECT_EQ(config.max_positions(), 512);
  EXPECT_EQ(config.norm_epsilon(), 0x1p-16);
  EXPECT_EQ(config.rope_theta(""), 10000);
  EXPECT_EQ(config.dtype(), "float16");
  EXPECT_TRUE(config.tied());
  EXPECT_EQ(config.weight_codes(), "");
}

TEST(GgufModel, CodesOfAllLayersAreSaid) {
  const TemporaryDirectory directory;
  EXPECT_EQ(HfConfig::read(write_model(directory, GgmlType::q8_0)).weight_codes(), "int8-g32");
  EXPECT_EQ(HfConfig::read(write_model(directory, GgmlType::q4_0)).weight_codes(), "int4");
  GgufBytes mixed = metadata();
  mixed.tensor("blk.0.attn_q.weight", {kWidth, 16}, 8, paired(GgmlType::q8_0))
      .tensor("blk.0.ffn_up.weight", {kWidth, 16}, 2, paired(GgmlType::q4_0))
      .tensor("token_embd.weight", {kWidth, 10}, 0, std::string(10 * kWidth * 4, '\0'));
  EXPECT_EQ(HfConfig::read(directory.write("mixed.gguf", mixed.file())).weight_codes(), "");
}

// Ten rows of the width, stored as `type`.
std::string table(GgmlType type) {
  const GgmlBlock block = ggml_block(type);
  return std::string(static_cast<size_t>(10 * kWidth / block.elements * block.bytes), '\0');
}

HfConfig with_tables(GgmlType embedding, std::optional<GgmlType> head) {
  const TemporaryDirectory directory;
  GgufBytes file = metadata();
  file.tensor("blk.0.attn_q.weight", {kWidth, 16}, 2, paired(GgmlType::q4_0))
      .tensor("token_embd.weight", {kWidth, 10}, static_cast<uint32_t>(embedding), table(embedding));
  if (head) file.tensor("output.weight", {kWidth, 10}, static_cast<uint32_t>(*head), table(*head));
  return HfConfig::read(directory.write("tables.gguf", file.file()));
}

TEST(GgufModel, CodesOfEmbeddingAndHeadAreSaid) {
  const auto codes = [](const HfConfig& config) {
    EXPECT_EQ(config.weight_codes(), "int4");
    return std::pair(config.embedding_codes(), config.head_codes());
  };
  using Codes = std::pair<std::string, std::string>;
  EXPECT_EQ(codes(with_tables(GgmlType::q4_0, {})), Codes("int4", "int4"));
  EXPECT_EQ(codes(with_tables(GgmlType::q4_0, GgmlType::q8_0)), Codes("int4", "int8-g32"));
  EXPECT_EQ(codes(with_tables(GgmlType::f16, GgmlType::q4_0)), Codes("", "int4"));
  EXPECT_EQ(codes(with_tables(GgmlType::f32, {})), Codes("", ""));
}

TEST(GgufModel, FactorsOfRotaryPositionsAreLongRope) {
  const TemporaryDirectory directory;
  std::string factors;
  for (const float factor : {1.0f, 1.5f, 4.0f, 8.0f}) factors += GgufBytes::raw(factor);
  GgufBytes file = metadata();
  file.tensor("token_embd.weight", {kWidth, 10}, 0, std::string(10 * kWidth * 4, '\0'))
      .tensor("rope_freqs.weight", {4}, 0, factors);
  const std::filesystem::path path = directory.write("model.gguf", file.file());
  const RopeScaling scaling = HfConfig::read(path).rope_scaling("");
  EXPECT_EQ(scaling.type, RopeType::longrope);
  EXPECT_EQ(scaling.long_factors, (std::vector<double>{1, 1.5, 4, 8}));
  EXPECT_EQ(scaling.short_factors, scaling.long_factors);
  EXPECT_EQ(scaling.amplitude, 1);
  EXPECT_EQ(SafetensorsSet::open(path).find("rope_freqs.weight"), nullptr);
}

TEST(GgufModel, RowsComeInTheOrderOfHalves) {
  for (const GgmlType type : {GgmlType::f32, GgmlType::f16, GgmlType::q8_0, GgmlType::q4_0}) {
    const TemporaryDirectory directory;
    const SafetensorsSet files = SafetensorsSet::open(write_model(directory, type));
    const StoredTensor& q = files.at("model.layers.0.self_attn.q_proj.weight");
    EXPECT_EQ(q.shape, (std::vector<int64_t>{16, kWidth}));
    EXPECT_EQ(q.type, type == GgmlType::f16 ? StoredType::f16 : StoredType::f32);
    if (type == GgmlType::f16) continue;
    std::vector<float> values(16 * kWidth);
    files.read(q, 0, std::as_writable_bytes(std::span(values)));
    const float most = type == GgmlType::f32 ? 0 : type == GgmlType::q8_0 ? 0.01f : 0.2f;
    for (int64_t i = 0; i < 16 * kWidth; ++i) EXPECT_NEAR(values[static_cast<size_t>(i)], element(i), most) << i;
    // Pieces with arbitrary start and length.
    for (const auto& [first, count] : {std::pair{5, 3}, {60, 70}, {31, 400}, {1023, 1}}) {
      std::vector<float> piece(static_cast<size_t>(count));
      files.read(q, first * 4, std::as_writable_bytes(std::span(piece)));
      for (int i = 0; i < count; ++i)
        EXPECT_EQ(piece[static_cast<size_t>(i)], values[static_cast<size_t>(first + i)]) << first << " + " << i;
    }
  }
}

TEST(GgufModel, CodesAndScalesAreTheValues) {
  for (const GgmlType type : {GgmlType::q8_0, GgmlType::q4_0}) {
    const TemporaryDirectory directory;
    const SafetensorsSet files = SafetensorsSet::open(write_model(directory, type));
    const StoredTensor& q = files.at("model.layers.0.self_attn.q_proj.weight");
    const int bits = type == GgmlType::q8_0 ? 8 : 4;
    std::vector<float> values(16 * kWidth), scales(16 * kWidth / 32), decoded(32);
    files.read(q, 0, std::as_writable_bytes(std::span(values)));
    std::vector<uint8_t> codes(static_cast<size_t>(code_bytes(16 * kWidth, bits)));
    // In two pieces that split a block.
    const size_t cut = 133;
    const auto bytes = std::as_writable_bytes(std::span(codes));
    files.gguf()->read_codes(q.file, 0, bytes.first(cut));
    files.gguf()->read_codes(q.file, static_cast<int64_t>(cut) * 8 / bits, bytes.subspan(cut));
    files.gguf()->read_scales(q.file, 0, std::span(scales).first(7));
    files.gguf()->read_scales(q.file, 7, std::span(scales).subspan(7));
    for (size_t block = 0; block < scales.size(); ++block) {
      decode(CodeTable::integer, bits, codes.data() + code_bytes(static_cast<int64_t>(block) * 32, bits), scales[block],
             0, 32, decoded.data());
      for (size_t i = 0; i < 32; ++i) EXPECT_EQ(decoded[i], values[block * 32 + i]) << block << " " << i;
    }
  }
}

TEST(GgufModel, OneFileOfADirectoryIsFound) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(gguf_of_model(directory.path()).empty());
  write_model(directory, GgmlType::f32);
  EXPECT_EQ(gguf_of_model(directory.path()), directory / "model.gguf");
  EXPECT_EQ(gguf_of_model(directory / "model.gguf"), directory / "model.gguf");
  directory.write("other.gguf", "");
  expect_error(ErrorKind::usage, "several models: model.gguf and other.gguf", [&] { gguf_of_model(directory.path()); });
  directory.write("model.safetensors", "");
  EXPECT_TRUE(gguf_of_model(directory.path()).empty());
}

TEST(GgufModel, WhatIsNotReadIsNamed) {
  const TemporaryDirectory directory;
  const auto path = [&](const GgufBytes& file) { return directory.write("model.gguf", file.file()); };
  const auto config_refused = [&](const GgufBytes& file, const std::string& part) {
    expect_error(ErrorKind::format, part, [&] { HfConfig::read(path(file)); });
  };
  config_refused(GgufBytes().words("general.architecture", "mamba"), "'mamba', not one of llama, qwen2, qwen3");
  config_refused(GgufBytes(), "general.architecture");
  config_refused(GgufBytes().words("general.architecture", "llama"), "llama.embedding_length is missing");
  config_refused(metadata(), "token_embd.weight is missing");
  config_refused(metadata().number("llama.expert_count", uint32_t{8}), "llama.expert_count is 8");
  config_refused(GgufBytes().words("general.architecture", "llama").words("llama.embedding_length", "wide"),
                 "not a number");
  const auto weights_refused = [&](const GgufBytes& file, const std::string& part) {
    expect_error(ErrorKind::format, part, [&] { SafetensorsSet::open(path(file)); });
  };
  weights_refused(metadata().tensor("blk.0.ssm_in.weight", {1}, 0, std::string(4, '\0')),
                  "'blk.0.ssm_in.weight' at byte");
  weights_refused(metadata().tensor("blk.0.attn_q.weight", {1, 7}, 0, std::string(28, '\0')), "7 rows for 2 heads");
  expect_error(ErrorKind::usage, "one of 3 parts",
               [&] { SafetensorsSet::open(path(metadata().entry("split.count", 2, GgufBytes::raw(uint16_t{3})))); });
}

TEST(GgufNames, GoBothWays) {
  for (const char* name : {"token_embd.weight", "output_norm.weight", "output.weight", "blk.0.attn_q.weight",
                           "blk.11.attn_k.bias", "blk.100.ffn_down.weight", "blk.3.attn_q_norm.weight"})
    EXPECT_EQ(gguf_of_weight(weight_of_gguf(name)), name);
  EXPECT_EQ(weight_of_gguf("blk.7.ffn_gate.weight"), "model.layers.7.mlp.gate_proj.weight");
  for (const char* name :
       {"", "blk", "blk.weight", "blk..attn_q.weight", "blk.00.attn_q.weight", "blk.1x.attn_q.weight", "blk.1.attn_q",
        "blk.12345678.attn_q.weight", "blk.1.weight", "attn_q.weight"})
    EXPECT_EQ(weight_of_gguf(name), "") << name;
  for (int64_t row = 0; row < 24; ++row) EXPECT_EQ(halved_row(paired_row(row, 8), 8), row);
  EXPECT_EQ(paired_row(1, 8), 2);
  EXPECT_EQ(paired_row(4, 8), 1);
}

}  // namespace
}  // namespace headroom
