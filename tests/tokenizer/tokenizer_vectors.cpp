#include "tokenizer_vectors.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string_view>

#include "../data_files/data_files.h"
#include "base/error.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/stream_encoder.h"

namespace headroom {

std::vector<Json> read_rows(const std::filesystem::path& path) {
  std::vector<Json> rows;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) rows.push_back(Json::parse(line));
  return rows;
}

std::vector<std::filesystem::path> real_tokenizers() {
  std::vector<std::filesystem::path> folders;
  for (const std::filesystem::path& set : test::data_files("tokenizers"))
    for (const char* name : {"gpt2", "qwen2.5", "llama2", "gpt-neox-20b", "bert-base-uncased"})
      folders.push_back(set / name);
  return folders;
}

std::vector<Json> golden_bpe() {
  return read_rows(std::filesystem::path(HEADROOM_SOURCE_DIR) / "tests/tokenizer/golden.jsonl");
}

std::vector<Json> golden_models() {
  std::vector<Json> lines =
      read_rows(std::filesystem::path(HEADROOM_SOURCE_DIR) / "tests/tokenizer/golden_models.jsonl");
  const Json texts = lines.at(0);
  lines.erase(lines.begin());
  for (Json& entry : lines) {
    entry["rows"] = Json::array();
    for (size_t i = 0; i < texts.size(); ++i) {
      Json row = {{"text", texts[i]}, {"ids", entry.at("ids").at(i)}};
      if (!row["ids"].is_null()) row["decoded"] = entry.at("decoded").at(i);
      entry["rows"].push_back(std::move(row));
    }
  }
  return lines;
}

std::vector<Json> golden_tokenizers() {
  std::vector<Json> all = golden_bpe();
  for (Json& entry : golden_models())
    if (entry.at("name") != "no-unknown") all.push_back(std::move(entry));
  return all;
}

std::vector<int32_t> encode_in_chunks(const Tokenizer& tokenizer, const std::string& text, size_t chunk,
                                      int64_t max_piece_bytes, int64_t& forced_cuts) {
  StreamEncoder encoder(tokenizer, true, max_piece_bytes);
  std::vector<int32_t> ids;
  for (size_t at = 0; at < text.size(); at += chunk) encoder.feed(std::string_view(text).substr(at, chunk), ids);
  encoder.finish(ids);
  forced_cuts = encoder.forced_cuts();
  return ids;
}

void check_rows(const Tokenizer& tokenizer, const std::vector<Json>& rows) {
  ASSERT_FALSE(rows.empty());
  size_t chunk = 1;
  for (const Json& row : rows) {
    const auto text = row.at("text").get<std::string>();
    SCOPED_TRACE(text.substr(0, 80));
    if (row.at("ids").is_null()) {
      EXPECT_THROW(tokenizer.encode(text, true), Error);
      continue;
    }
    const auto ids = row.at("ids").get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer.encode(text, true), ids);
    if (row.contains("ids_no_special")) {
      EXPECT_EQ(tokenizer.encode(text, false), row["ids_no_special"].get<std::vector<int32_t>>());
    }
    int64_t forced_cuts = 0;
    const std::vector<int32_t> streamed =
        encode_in_chunks(tokenizer, text, chunk, 64 + static_cast<int64_t>(chunk), forced_cuts);
    if (forced_cuts == 0) {
      EXPECT_EQ(streamed, ids);
    }
    chunk = chunk % 11 + 1;
    if (!row.contains("decoded")) continue;
    const auto decoded = row["decoded"].get<std::string>();
    EXPECT_EQ(tokenizer.decode(ids), decoded);
    StreamDecoder decoder(tokenizer);
    std::string pieces;
    for (const int32_t id : ids) pieces += decoder.push(id);
    EXPECT_EQ(pieces + decoder.finish(), decoded);
  }
}

}  // namespace headroom
