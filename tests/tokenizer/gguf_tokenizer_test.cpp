// The tokenizer of a GGUF gives the ids of the same model's tokenizer.json; malformed metadata is refused by key.
#include "tokenizer/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "../data_files/data_files.h"
#include "../formats/expect_error.h"
#include "../formats/temporary_directory.h"
#include "gguf_metadata.h"
#include "tokenizer/tokenizer_place.h"
#include "tokenizer_vectors.h"

namespace headroom {
namespace {

struct Model {
  std::filesystem::path folder;
  std::string pre;  // empty: BPE with byte fallback
};

void PrintTo(const Model& value, std::ostream* out) { *out << value.folder.string(); }

// Those in the repository, whole ones if ../shared exists. The repository's Llama 2 has learned merges, which lack
// pairs that scores allow; stories260K has all.
std::vector<Model> models() {
  std::vector<Model> all{{test::data_file("stories260K"), ""}};
  for (const std::filesystem::path& set : test::data_files("tokenizers")) {
    all.push_back({set / "gpt2", "gpt-2"});
    all.push_back({set / "qwen2.5", "qwen2"});
    if (!test::is_in_tree(set)) all.push_back({set / "llama2", ""});
  }
  return all;
}

GgufBytes with_special_tokens(const GgufMetadata& metadata, const Tokenizer& tokenizer) {
  GgufBytes bytes = metadata.bytes();
  const auto put = [&](const char* key, const std::optional<int32_t>& id) {
    if (id) bytes.number(key, static_cast<uint32_t>(*id));
  };
  put("tokenizer.ggml.bos_token_id", tokenizer.bos_id());
  put("tokenizer.ggml.eos_token_id", tokenizer.eos_id());
  put("tokenizer.ggml.unknown_token_id", tokenizer.token_id("<unk>"));
  bytes.entry("tokenizer.ggml.add_bos_token", 7, std::string(1, tokenizer.adds_bos() ? '\1' : '\0'));
  return bytes;
}

class GgufOfModel : public testing::TestWithParam<Model> {};

TEST_P(GgufOfModel, HasTheIdsOfItsTokenizerJson) {
  const Tokenizer wanted = Tokenizer::load(GetParam().folder);
  const TemporaryDirectory directory;
  const GgufMetadata metadata = metadata_of(GetParam().folder, GetParam().pre);
  const Tokenizer found = Tokenizer::load(directory.write("model.gguf", with_special_tokens(metadata, wanted).file()));
  EXPECT_EQ(found.vocab_size(), wanted.vocab_size());
  EXPECT_EQ(found.bos_id(), wanted.bos_id());
  EXPECT_EQ(found.eos_id(), wanted.eos_id());
  EXPECT_EQ(found.adds_bos(), wanted.adds_bos());
  EXPECT_EQ(found.adds_eos(), wanted.adds_eos());
  std::vector<Json> rows = read_rows(test::data_file("tokenizers/gpt2/vectors.jsonl"));
  const std::string more = "  two  spaces, 1234567 digits 🎉 中文 e\u0301 \a" + wanted.token(*wanted.eos_id()) + " x";
  rows.push_back(Json::object({{"text", more}}));
  for (Json& row : rows) {
    const auto text = row.at("text").get<std::string>();
    const std::vector<int32_t> ids = wanted.encode(text, true);
    row = {
        {"text", text}, {"ids", ids}, {"ids_no_special", wanted.encode(text, false)}, {"decoded", wanted.decode(ids)}};
  }
  check_rows(found, rows);
}
INSTANTIATE_TEST_SUITE_P(Models, GgufOfModel, testing::ValuesIn(models()),
                         [](const auto& param) { return test::data_file_label(param.param.folder); });

GgufMetadata small() {
  GgufMetadata out;
  out.tokens = {"a", "b", "ab", "<s>"};
  out.types = {kTokenNormal, kTokenNormal, kTokenNormal, kTokenControl};
  out.merges = {"a b"};
  return out;
}

// With scores: "ab" before "bc".
GgufMetadata small_scored() {
  GgufMetadata out;
  out.model = "llama";
  out.pre = "";
  out.tokens = {"\u2581", "a", "b", "c", "ab", "bc", "<s>"};
  out.types = {1, 1, 1, 1, 1, 1, 3};
  out.scores = {-9, -9, -9, -9, -1, -2, 0};
  return out;
}

GgufTokenizer read(const GgufBytes& bytes) {
  const std::string file = bytes.file();
  const ByteSource source = GgufBytes::source(file);
  return read_gguf_tokenizer(source, parse_gguf_header(source));
}

void expect_refused(const std::string& part, const GgufBytes& bytes) {
  expect_error(ErrorKind::format, part, [&] { read(bytes); });
}
void expect_refused(const std::string& part, GgufMetadata metadata, const std::function<void(GgufMetadata&)>& spoil) {
  spoil(metadata);
  expect_refused(part, metadata.bytes().number("tokenizer.ggml.bos_token_id", uint32_t{0}));
}

TEST(GgufTokenizer, RefusesOtherKindsByName) {
  expect_refused("tokenizer.ggml.model is 'bert'", small(), [](GgufMetadata& m) { m.model = "bert"; });
  expect_refused("tokenizer.ggml.pre is 'tekken'", small(), [](GgufMetadata& m) { m.pre = "tekken"; });
  expect_refused("tokenizer.ggml.pre is 'default'", small(), [](GgufMetadata& m) { m.pre = "default"; });
  expect_refused("tokenizer.ggml.pre is missing", small(), [](GgufMetadata& m) { m.pre = ""; });
}

TEST(GgufTokenizer, RefusesMalformedListsByKeyAndIndex) {
  expect_refused("tokenizer.ggml.tokens is empty", small(), [](GgufMetadata& m) { m.tokens.clear(); });
  expect_refused("tokenizer.ggml.tokens[1] is not UTF-8", small(), [](GgufMetadata& m) { m.tokens[1] = "\xff"; });
  expect_refused("tokenizer.ggml.tokens[3] has 5000 bytes", small(),
                 [](GgufMetadata& m) { m.tokens[3] = std::string(5000, 'x'); });
  expect_refused("tokenizer.ggml.token_type is missing", small(), [](GgufMetadata& m) { m.types.clear(); });
  expect_refused("tokenizer.ggml.token_type has 3 elements for 4 tokens", small(),
                 [](GgufMetadata& m) { m.types.pop_back(); });
  for (const int32_t type : {-1, 7})
    expect_refused("tokenizer.ggml.token_type[2]", small(), [&](GgufMetadata& m) { m.types[2] = type; });
  for (const char* merge : {"", "ab", "a ", "a c", "b a", "a b b"})
    expect_refused("tokenizer.ggml.merges[1]", small(), [&](GgufMetadata& m) { m.merges.push_back(merge); });
  expect_refused("tokenizer.ggml.scores is missing", small_scored(), [](GgufMetadata& m) { m.scores.clear(); });
  expect_refused("tokenizer.ggml.scores has 6 elements", small_scored(), [](GgufMetadata& m) { m.scores.pop_back(); });
  expect_refused("tokenizer.ggml.scores[2] is not a number", small_scored(),
                 [](GgufMetadata& m) { m.scores[2] = std::numeric_limits<float>::quiet_NaN(); });
  expect_refused("tokenizer.ggml.tokens[4] has 300 bytes", small_scored(),
                 [](GgufMetadata& m) { m.tokens[4] = std::string(300, 'a'); });
}

TEST(GgufTokenizer, RefusesIdsWithoutAToken) {
  expect_refused("tokenizer.ggml.bos_token_id is 4",
                 small().bytes().number("tokenizer.ggml.bos_token_id", uint32_t{4}));
  expect_refused("tokenizer.ggml.eos_token_id is", small().bytes().words("tokenizer.ggml.eos_token_id", "</s>"));
  expect_refused("tokenizer.ggml.bos_token_id is missing", small_scored().bytes());
  expect_refused("tokenizer.ggml.eos_token_id is missing",
                 small().bytes().entry("tokenizer.ggml.add_eos_token", 7, std::string(1, '\1')));
  expect_refused("tokenizer.ggml.add_bos_token is neither true nor false",
                 small().bytes().number("tokenizer.ggml.add_bos_token", uint32_t{1}));
}

TEST(GgufTokenizer, MergesByScoreAndThenFromTheLeft) {
  const TemporaryDirectory directory;
  const auto ids_of = [&](const GgufMetadata& metadata, const char* text) {
    const GgufBytes bytes = metadata.bytes().number("tokenizer.ggml.bos_token_id", uint32_t{6});
    return Tokenizer::load(directory.write("model.gguf", bytes.file())).encode(text, true);
  };
  using Ids = std::vector<int32_t>;
  GgufMetadata metadata = small_scored();
  EXPECT_EQ(ids_of(metadata, "abc"), (Ids{6, 0, 4, 3}));
  metadata.scores[5] = 0;
  EXPECT_EQ(ids_of(metadata, "abc"), (Ids{6, 0, 1, 5}));
  metadata.scores[4] = 0;
  EXPECT_EQ(ids_of(metadata, "abc<s>bc"), (Ids{6, 0, 4, 3, 6, 0, 5}));
}

TEST(GgufTokenizer, IsUsedWithoutATokenizerJson) {
  const TemporaryDirectory directory;
  const std::filesystem::path file =
      directory.write("model.gguf", small().bytes().words("tokenizer.chat_template", "{{ messages }}").file());
  EXPECT_EQ(tokenizer_place(file), file);
  EXPECT_EQ(tokenizer_place(directory.path()), file);
  EXPECT_TRUE(is_gguf_tokenizer(file));
  EXPECT_FALSE(is_unread_tokenizer(file));
  EXPECT_EQ(gguf_chat_template(file), "{{ messages }}");
  EXPECT_GT(tokenizer_file_bytes(file), 0);
  directory.write("tokenizer.json", bytes_tokenizer_json());
  EXPECT_EQ(tokenizer_place(file), directory.path());
  EXPECT_FALSE(is_gguf_tokenizer(directory.path()));
}

TEST(GgufTokenizer, OfAnotherKindIsNamedWhenItIsLoaded) {
  const TemporaryDirectory directory;
  GgufMetadata metadata = small();
  metadata.pre = "tekken";
  const std::filesystem::path file = directory.write("model.gguf", metadata.bytes().file());
  EXPECT_EQ(tokenizer_place(file), file);
  EXPECT_TRUE(is_unread_tokenizer(file));
  expect_error(ErrorKind::format, "tekken", [&] { Tokenizer::load(file); });
  metadata.model = "no_vocab";
  EXPECT_EQ(tokenizer_place(directory.write("model.gguf", metadata.bytes().file())), directory.path());
}

}  // namespace
}  // namespace headroom
