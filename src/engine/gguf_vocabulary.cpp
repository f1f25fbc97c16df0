#include "engine/gguf_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/token_names.h"
#include "formats/tokenizer_json.h"
#include "formats/tokenizer_json_writer.h"
#include "tokenizer/gguf_tokenizer.h"
#include "tokenizer/known_patterns.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_place.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

std::string text_at(const Json& object, const char* key) {
  const Json value = object.is_object() ? object.value(key, Json()) : Json();
  return value.is_string() ? value.get<std::string>() : std::string();
}

// The name of a pre_tokenizer of byte-level BPE; empty for one that llama.cpp does not have. Without merges the
// splitting does not matter.
std::string word_splitting(const Json& pre_tokenizer, bool merges) {
  if (text_at(pre_tokenizer, "type") == "ByteLevel")
    return !merges || pre_tokenizer.value("use_regex", Json(true)) == true ? "gpt-2" : "";
  const Json steps = pre_tokenizer.is_object() ? pre_tokenizer.value("pretokenizers", Json()) : Json();
  if (!steps.is_array() || steps.size() != 2 || text_at(steps[1], "type") != "ByteLevel") return "";
  const bool splits_further = steps[1].value("use_regex", Json(true)) == true;
  if (text_at(steps[0], "type") == "Digits" && steps[0].value("individual_digits", Json()) == true && splits_further)
    return "smollm";
  if (text_at(steps[0], "type") != "Split" || splits_further) return "";
  const std::string pattern = text_at(steps[0].value("pattern", Json()), "Regex");
  for (const auto& [known, name] : {std::pair{kLlama3Pattern, "llama-bpe"}, std::pair{kQwen2Pattern, "qwen2"}})
    if (known == pattern) return name;
  return "";
}

bool puts_space_first(const Json& root) {
  const std::string all = root.value("normalizer", Json()).dump(-1, ' ', true, Json::error_handler_t::replace) +
                          root.value("pre_tokenizer", Json()).dump(-1, ' ', true, Json::error_handler_t::replace);
  if (all.find("\"Prepend\"") != all.npos) return true;
  return all.find("\"Metaspace\"") != all.npos && all.find("\"prepend_scheme\":\"never\"") == all.npos;
}

bool is_byte_token(std::string_view token) {
  return token.size() == 6 && token.starts_with("<0x") && token.ends_with(">");
}

class Vocabulary {
 public:
  Vocabulary(const TokenizerJson& json, int64_t vocab)
      : json_(json), tokens_(static_cast<size_t>(vocab)), types_(static_cast<size_t>(vocab), kTokenUnused) {
    for (uint32_t id = 0; id < std::min<uint64_t>(json.vocabulary.id_limit(), tokens_.size()); ++id) {
      if (!json.vocabulary.contains(id)) continue;
      tokens_[id] = json.vocabulary.token(id);
      types_[id] = kTokenNormal;
    }
    for (const Json& added : json.root.value("added_tokens", Json::array())) {
      const Json id = added.is_object() ? added.value("id", Json()) : Json();
      if (!id.is_number_unsigned() || id.get<uint64_t>() >= tokens_.size()) continue;
      tokens_[id.get<size_t>()] = text_at(added, "content");
      types_[id.get<size_t>()] = added.value("special", Json()) == true ? kTokenControl : kTokenUserDefined;
    }
    for (size_t id = 0; id < tokens_.size(); ++id)
      if (types_[id] == kTokenUnused) tokens_[id] = fmt::format("[PAD{}]", id);
  }

  void put_byte_level(GgufWriter& writer, const std::string& splitting) {
    put(writer, "gpt2", splitting);
    std::vector<std::string> merges;
    for (const TokenMerge& merge : listed_merges(json_.merges))
      merges.push_back(fmt::format("{} {}", json_.vocabulary.token(merge.left), json_.vocabulary.token(merge.right)));
    writer.put("tokenizer.ggml.merges", std::span<const std::string>(merges));
  }

  // llama.cpp merges the pair whose token has the highest score first: the earlier the merge, the higher its score.
  void put_byte_fallback(GgufWriter& writer) {
    const std::string unknown = text_at(json_.root.value("model", Json()), "unk_token");
    const std::vector<TokenMerge> merges = listed_merges(json_.merges);
    std::vector<float> scores(tokens_.size(), 0.0f);
    std::vector<bool> made(tokens_.size(), false);
    for (size_t i = 0; i < merges.size(); ++i)
      if (const uint32_t id = merges[i].merged; id < made.size() && !made[id]) {
        made[id] = true;
        scores[id] = -static_cast<float>(i);
      }
    for (size_t id = 0; id < tokens_.size(); ++id) {
      if (!made[id] && types_[id] == kTokenNormal) scores[id] = -static_cast<float>(merges.size());
      if (is_byte_token(tokens_[id])) types_[id] = kTokenByte;
      if (!unknown.empty() && tokens_[id] == unknown) types_[id] = kTokenUnknown;
    }
    put(writer, "llama", "default");
    writer.put("tokenizer.ggml.scores", std::span<const float>(scores));
    writer.put("tokenizer.ggml.add_space_prefix", puts_space_first(json_.root));
  }

 private:
  void put(GgufWriter& writer, std::string_view model, std::string_view splitting) {
    writer.put("tokenizer.ggml.model", model);
    writer.put("tokenizer.ggml.pre", splitting);
    writer.put("tokenizer.ggml.tokens", std::span<const std::string>(tokens_));
    writer.put("tokenizer.ggml.token_type", std::span<const int32_t>(types_));
  }

  const TokenizerJson& json_;
  std::vector<std::string> tokens_;
  std::vector<int32_t> types_;
};

void put_special(GgufWriter& writer, const fs::path& folder) {
  const Tokenizer tokenizer = Tokenizer::load(folder);
  const auto put = [&](const char* key, const std::optional<int32_t>& id) {
    if (id) writer.put(fmt::format("tokenizer.ggml.{}_token_id", key), static_cast<uint32_t>(*id));
  };
  put("bos", tokenizer.bos_id());
  put("eos", tokenizer.eos_id());
  writer.put("tokenizer.ggml.add_bos_token", tokenizer.adds_bos());
  writer.put("tokenizer.ggml.add_eos_token", tokenizer.adds_eos());
  const fs::path file = folder / "tokenizer_config.json";
  if (!is_file_there(file)) return;
  const Json names = read_token_names(file);
  for (const auto& [key, name] : {std::pair{"unknown", "unk_token"}, std::pair{"padding", "pad_token"}}) {
    const Json named = names.is_object() ? names.value(name, Json()) : Json();
    const std::string content = named.is_string() ? named.get<std::string>() : text_at(named, "content");
    if (!content.empty()) put(key, tokenizer.token_id(content));
  }
  std::string chat = text_at(names, "chat_template");
  if (const fs::path beside = folder / "chat_template.jinja"; is_file_there(beside)) chat = read_text_file(beside);
  if (!chat.empty()) writer.put("tokenizer.chat_template", std::string_view(chat));
}

}  // namespace

std::string put_vocabulary(GgufWriter& writer, const fs::path& folder, int64_t vocab) {
  const auto without = [&](const std::string& why) {
    writer.put("tokenizer.ggml.model", std::string_view("no_vocab"));
    return why;
  };
  if (!is_file_there(folder / "tokenizer.json")) return without("the model has no tokenizer.json");
  const TokenizerJson json = read_tokenizer_json(folder / "tokenizer.json");
  if (json.kind != TokenModelKind::bpe) return without("its tokenizer is not byte-pair encoding");
  const bool fallback = json.root.value("model", Json::object()).value("byte_fallback", Json()) == true;
  const std::string splitting =
      fallback ? "" : word_splitting(json.root.value("pre_tokenizer", Json()), json.merges.size() > 0);
  if (!fallback && splitting.empty()) return without("llama.cpp does not split words as its tokenizer does");
  Vocabulary vocabulary(json, vocab);
  if (fallback)
    vocabulary.put_byte_fallback(writer);
  else
    vocabulary.put_byte_level(writer, splitting);
  put_special(writer, folder);
  return "";
}

int64_t vocabulary_bytes(const fs::path& place) {
  const int64_t size = tokenizer_file_bytes(place);
  return size == 0 ? 0 : 2 * Tokenizer::memory_bound(size) + 4 * size + tokenizer_header_bytes(place);
}

}  // namespace headroom
