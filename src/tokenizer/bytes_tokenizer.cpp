#include "base/error.h"
#include "formats/json.h"
#include "tokenizer/byte_symbols.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

constexpr int32_t kBos = 256, kEos = 257;

using OrderedJson = nlohmann::ordered_json;

OrderedJson added_token(int32_t id, const char* content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

OrderedJson special_piece(const char* content) { return {{"SpecialToken", {{"id", content}, {"type_id", 0}}}}; }
OrderedJson text_piece(const char* name) { return {{"Sequence", {{"id", name}, {"type_id", 0}}}}; }

OrderedJson byte_level() {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
}

}  // namespace

std::string bytes_tokenizer_json() {
  OrderedJson vocabulary = OrderedJson::object();
  for (int32_t byte = 0; byte < 256; ++byte) {
    std::string symbol;
    append_utf8(kByteSymbols[static_cast<size_t>(byte)], symbol);
    vocabulary[symbol] = byte;
  }
  OrderedJson root = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  root["added_tokens"] = {added_token(kBos, "<s>"), added_token(kEos, "</s>")};
  root["normalizer"] = nullptr;
  root["pre_tokenizer"] = byte_level();
  root["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", OrderedJson::array({special_piece("<s>"), text_piece("A")})},
      {"pair", OrderedJson::array({special_piece("<s>"), text_piece("A"), text_piece("B")})},
      {"special_tokens",
       {{"<s>", {{"id", "<s>"}, {"ids", OrderedJson::array({kBos})}, {"tokens", OrderedJson::array({"<s>"})}}}}}};
  root["decoder"] = byte_level();
  root["model"] = {{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", nullptr},
                   {"continuing_subword_prefix", nullptr},
                   {"end_of_word_suffix", nullptr},
                   {"fuse_unk", false},
                   {"byte_fallback", false},
                   {"ignore_merges", false},
                   {"vocab", std::move(vocabulary)},
                   {"merges", OrderedJson::array()}};
  return root.dump(1) + "\n";
}

}  // namespace headroom
