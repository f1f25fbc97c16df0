// The metadata of a GGUF with a tokenizer, made by hand or from a tokenizer.json.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "../formats/gguf_bytes.h"
#include "formats/tokenizer_json.h"
#include "formats/tokenizer_json_writer.h"
#include "tokenizer/gguf_tokenizer.h"

namespace headroom {

struct GgufMetadata {
  std::string model = "gpt2", pre = "gpt-2";
  std::vector<std::string> tokens, merges;
  std::vector<int32_t> types;
  std::vector<float> scores;

  // The lists that are not empty, and model and pre.
  GgufBytes bytes() const {
    GgufBytes out;
    out.words("general.architecture", "llama").words("tokenizer.ggml.model", model);
    if (!pre.empty()) out.words("tokenizer.ggml.pre", pre);
    out.list("tokenizer.ggml.tokens", tokens);
    if (!types.empty()) out.entry("tokenizer.ggml.token_type", 9, numbers(GgufType::i32, types));
    if (!scores.empty()) out.entry("tokenizer.ggml.scores", 9, numbers(GgufType::f32, scores));
    if (model == "gpt2") out.list("tokenizer.ggml.merges", merges);
    return out;
  }

 private:
  template <typename T>
  static std::string numbers(GgufType type, const std::vector<T>& values) {
    std::string out = GgufBytes::raw(static_cast<uint32_t>(type)) + GgufBytes::raw<uint64_t>(values.size());
    for (const T value : values) out += GgufBytes::raw(value);
    return out;
  }
};

// As llama.cpp's converter writes it. `pre` empty: BPE with byte fallback, where a token's score is its place among the
// merges.
inline GgufMetadata metadata_of(const std::filesystem::path& folder, const std::string& pre) {
  const TokenizerJson json = read_tokenizer_json(folder / "tokenizer.json");
  GgufMetadata out;
  out.model = pre.empty() ? "llama" : "gpt2";
  out.pre = pre.empty() ? "default" : pre;
  size_t ids = json.vocabulary.id_limit();
  for (const Json& added : json.root.at("added_tokens")) ids = std::max(ids, added.at("id").get<size_t>() + 1);
  for (size_t id = 0; id < ids; ++id) {
    const bool there = json.vocabulary.contains(static_cast<uint32_t>(id));
    const std::string token(json.vocabulary.token(static_cast<uint32_t>(id)));
    const bool is_byte = pre.empty() && token.size() == 6 && token.starts_with("<0x");
    out.tokens.push_back(there ? token : "[PAD" + std::to_string(id) + "]");
    out.types.push_back(!there ? kTokenUnused : is_byte ? kTokenByte : kTokenNormal);
  }
  for (const Json& added : json.root.at("added_tokens")) {
    const auto id = added.at("id").get<size_t>();
    out.tokens[id] = added.at("content").get<std::string>();
    out.types[id] = added.at("special") == true ? kTokenControl : kTokenUserDefined;
    if (out.tokens[id] == "<unk>") out.types[id] = kTokenUnknown;
  }
  const std::vector<TokenMerge> merges = listed_merges(json.merges);
  if (pre.empty()) out.scores.assign(ids, -static_cast<float>(merges.size()));
  for (size_t i = merges.size(); i-- > 0;)
    if (pre.empty()) out.scores[merges[i].merged] = -static_cast<float>(i);
  for (const TokenMerge& merge : merges)
    if (!pre.empty())
      out.merges.push_back(std::string(json.vocabulary.token(merge.left)) + " " +
                           std::string(json.vocabulary.token(merge.right)));
  return out;
}

}  // namespace headroom
