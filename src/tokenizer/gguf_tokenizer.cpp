#include "tokenizer/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tokenizer/known_patterns.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;  // of the arrays, as of a tokenizer.json
constexpr int64_t kMostAdded = 100'000;           // tokens that are found in the text itself
constexpr size_t kMostTokenBytes = 4096;
constexpr size_t kMostPieceBytes = 256;  // of a token that is made of two others

constexpr const char* kModelKey = "tokenizer.ggml.model";
constexpr const char* kSplittingKey = "tokenizer.ggml.pre";
constexpr const char* kTokensKey = "tokenizer.ggml.tokens";
constexpr const char* kTypesKey = "tokenizer.ggml.token_type";
constexpr const char* kScoresKey = "tokenizer.ggml.scores";
constexpr const char* kMergesKey = "tokenizer.ggml.merges";
constexpr const char* kBosKey = "tokenizer.ggml.bos_token_id";
constexpr const char* kEosKey = "tokenizer.ggml.eos_token_id";
constexpr const char* kUnknownKey = "tokenizer.ggml.unknown_token_id";

std::string text_of(const GgufHeader& header, const char* key) {
  const auto found = header.values.find(key);
  return found != header.values.end() && found->second.is_string() ? found->second.get<std::string>() : "";
}

const GgufArray* find_array(const GgufHeader& header, const char* key) {
  const auto found = header.arrays.find(key);
  return found == header.arrays.end() ? nullptr : &found->second;
}

// A number of an array as a type; -1 for another number.
int32_t token_type_of(double number) {
  return number >= 0 && number <= 6 && number == std::floor(number) ? static_cast<int32_t>(number) : -1;
}

// Tokens that are found in the text itself.
bool is_added(int32_t type) { return type == kTokenUnknown || type == kTokenControl || type == kTokenUserDefined; }

// Tokens that take part in merges by score.
bool is_piece(int32_t type) { return type == kTokenUndefined || type == kTokenNormal || type == kTokenUnused; }

Json byte_level_step(bool splits) {
  return Json::object(
      {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", splits}});
}

Json sequence(const char* name, Json first, Json second) {
  return Json::object({{"type", "Sequence"}, {name, Json::array({std::move(first), std::move(second)})}});
}

Json split_by(std::string_view pattern) {
  Json split = Json::object({{"type", "Split"}, {"behavior", "Isolated"}, {"invert", false}});
  split["pattern"] = Json::object({{"Regex", std::string(pattern)}});
  return sequence("pretokenizers", std::move(split), byte_level_step(false));
}

// A way of splitting a text into words, and what else its name says about the tokenizer.
struct Splitting {
  Json pre_tokenizer;
  Json normalizer;
  bool ignore_merges = false;
  bool adds_bos = false;  // unless the file says otherwise
};

std::optional<Splitting> splitting_named(std::string_view name) {
  if (name == "gpt-2") return Splitting{byte_level_step(true), {}};
  if (name == "smollm") {
    Json digits = Json::object({{"type", "Digits"}, {"individual_digits", true}});
    return Splitting{sequence("pretokenizers", std::move(digits), byte_level_step(true)), {}};
  }
  if (name == "qwen2") return Splitting{split_by(kQwen2Pattern), Json::object({{"type", "NFC"}})};
  if (name == "llama-bpe" || name == "llama3" || name == "llama-v3")
    return Splitting{split_by(kLlama3Pattern), {}, true, true};
  return std::nullopt;
}

// U+2581 stands for a space; `space_first`: the text gets one in front.
void describe_spaces(bool space_first, Json& root) {
  const std::string mark = "\u2581";
  Json normalizers = Json::array(), decoders = Json::array();
  if (space_first) normalizers.push_back(Json::object({{"type", "Prepend"}, {"prepend", mark}}));
  const auto replace = [](const std::string& from, const std::string& to) {
    return Json::object({{"type", "Replace"}, {"pattern", Json::object({{"String", from}})}, {"content", to}});
  };
  normalizers.push_back(replace(" ", mark));
  decoders.push_back(replace(mark, " "));
  for (const char* const type : {"ByteFallback", "Fuse"}) decoders.push_back(Json::object({{"type", type}}));
  if (space_first) decoders.push_back(Json::object({{"type", "Strip"}, {"content", " "}, {"start", 1u}, {"stop", 0u}}));
  root["normalizer"] = Json::object({{"type", "Sequence"}, {"normalizers", std::move(normalizers)}});
  root["decoder"] = Json::object({{"type", "Sequence"}, {"decoders", std::move(decoders)}});
}

// What is put around a text, and around each of two.
class TemplateParts {
 public:
  TemplateParts(const TokenVocabulary& vocabulary, const std::optional<int32_t>& before,
                const std::optional<int32_t>& behind)
      : vocabulary_(vocabulary), before_(before), behind_(behind) {}

  Json component() && {
    if (!before_ && !behind_) return nullptr;
    Json single = Json::array(), pair = Json::array();
    add_text("A", 0, single);
    add_text("A", 0, pair);
    add_text("B", 1, pair);
    return Json::object({{"type", "TemplateProcessing"},
                         {"single", std::move(single)},
                         {"pair", std::move(pair)},
                         {"special_tokens", std::move(special_)}});
  }

 private:
  void add_text(const char* text, uint32_t type, Json& pieces) {
    add_special("bos", before_, type, pieces);
    pieces.push_back(Json::object({{"Sequence", Json::object({{"id", text}, {"type_id", type}})}}));
    add_special("eos", behind_, type, pieces);
  }
  void add_special(const char* name, const std::optional<int32_t>& id, uint32_t type, Json& pieces) {
    if (!id) return;
    pieces.push_back(Json::object({{"SpecialToken", Json::object({{"id", name}, {"type_id", type}})}}));
    const auto number = static_cast<uint32_t>(*id);
    special_[name] = Json::object({{"id", name},
                                   {"ids", Json::array({number})},
                                   {"tokens", Json::array({std::string(vocabulary_.token(number))})}});
  }

  const TokenVocabulary& vocabulary_;
  std::optional<int32_t> before_, behind_;
  Json special_ = Json::object();
};

class Reader {
 public:
  Reader(const ByteSource& source, const GgufHeader& header) : source_(source), header_(header) {}

  GgufTokenizer read() && {
    const std::string model = text_of(header_, kModelKey), name = text_of(header_, kSplittingKey);
    const bool scored = model == "llama";
    if (!scored && model != "gpt2")
      refuse(kModelKey, fmt::format("is '{}': this version reads gpt2 and llama", model.substr(0, 40)));
    std::optional<Splitting> splitting = splitting_named(name);
    if (!scored && !splitting)
      refuse(kSplittingKey, name.empty() ? "is missing"
                                         : fmt::format("is '{}': this version reads gpt-2, llama-bpe, qwen2 and smollm",
                                                       name.substr(0, 40)));
    out_.content.source = source_.name;
    tokens_ = &texts(kTokensKey);
    if (tokens_->count == 0) refuse(kTokensKey, "is empty");
    if (tokens_->count > int64_t{TokenVocabulary::kIdLimit})
      refuse(kTokensKey,
             fmt::format("has {} elements, at most {} are read", tokens_->count, TokenVocabulary::kIdLimit));
    read_types();
    read_tokens(scored);
    out_.bos_id = id(kBosKey);
    out_.eos_id = id(kEosKey);
    if (scored)
      read_byte_fallback();
    else
      read_byte_level(std::move(*splitting));
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view key, std::string_view problem) const {
    throw Error(ErrorKind::format, fmt::format("{}: {} {}", source_.name, key, problem),
                "put the model's tokenizer.json next to the file");
  }
  [[noreturn]] void refuse_element(const char* key, int64_t index, std::string_view problem) const {
    refuse(fmt::format("{}[{}]", key, index), problem);
  }

  const GgufArray& texts(const char* key) const {
    const GgufArray* const array = find_array(header_, key);
    if (!array) refuse(key, "is missing");
    if (array->type != GgufType::text) refuse(key, "is not a list of texts");
    if (array->bytes > kMostBytes)
      refuse(key, fmt::format("has {} bytes, at most {} are read", array->bytes, kMostBytes));
    return *array;
  }

  // One for each token.
  const GgufArray& numbers(const char* key) const {
    const GgufArray* const array = find_array(header_, key);
    if (!array) refuse(key, "is missing");
    if (array->type == GgufType::text || array->type == GgufType::boolean) refuse(key, "is not a list of numbers");
    if (array->count != tokens_->count)
      refuse(key, fmt::format("has {} elements for {} tokens", array->count, tokens_->count));
    return *array;
  }

  bool flag(const char* key, bool otherwise) const {
    const auto found = header_.values.find(key);
    if (found == header_.values.end()) return otherwise;
    if (!found->second.is_boolean()) refuse(key, "is neither true nor false");
    return found->second.get<bool>();
  }

  std::optional<int32_t> id(const char* key) const {
    const auto found = header_.values.find(key);
    if (found == header_.values.end()) return std::nullopt;
    const int64_t value = found->second.is_number_integer() ? found->second.get<int64_t>() : -1;
    if (value < 0 || value >= tokens_->count)
      refuse(key, fmt::format("is {}, not one of {} ids", found->second.is_string() ? "a text" : found->second.dump(),
                              tokens_->count));
    return static_cast<int32_t>(value);
  }

  void read_types() {
    const GgufArray& array = numbers(kTypesKey);
    types_.reserve(static_cast<size_t>(array.count));
    int64_t added = 0;
    each_gguf_number(source_, array, [&](int64_t i, double number) {
      const int32_t type = token_type_of(number);
      if (type < 0) refuse_element(kTypesKey, i, "is not a type from 0 to 6");
      types_.push_back(static_cast<uint8_t>(type));
      if (is_added(type) && ++added > kMostAdded)
        refuse(kTypesKey, fmt::format("has more than {} special tokens", kMostAdded));
    });
  }

  void read_tokens(bool scored) {
    TokenVocabulary::Builder builder;
    Json added = Json::array();
    each_gguf_text(source_, *tokens_, [&](int64_t i, std::string_view token) {
      const int32_t type = types_[static_cast<size_t>(i)];
      const size_t most = scored && is_piece(type) ? kMostPieceBytes : kMostTokenBytes;
      if (token.size() > most)
        refuse_element(kTokensKey, i, fmt::format("has {} bytes, more than {}", token.size(), most));
      if (check_utf8(token).valid != token.size()) refuse_element(kTokensKey, i, "is not UTF-8");
      if (type == kTokenUnused && token == fmt::format("[PAD{}]", i)) return;  // stands for an id without a token
      const auto id = static_cast<uint32_t>(i);
      builder.add(token, id);
      if (is_added(type))
        added.push_back(Json::object({{"id", id},
                                      {"content", std::string(token)},
                                      {"special", type != kTokenUserDefined},
                                      {"normalized", false}}));
    });
    out_.content.vocabulary = std::move(builder).finish(source_.name, TokenVocabulary::Repeated::highest_id);
    out_.content.root = Json::object({{"added_tokens", std::move(added)}});
  }

  void add_template(bool adds_bos) {
    const auto around = [&](const char* flag_key, bool otherwise, const char* key, const std::optional<int32_t>& id) {
      if (!flag(flag_key, otherwise)) return std::optional<int32_t>();
      if (!id) refuse(key, "is missing");
      return id;
    };
    const auto before = around("tokenizer.ggml.add_bos_token", adds_bos, kBosKey, out_.bos_id);
    const auto behind = around("tokenizer.ggml.add_eos_token", false, kEosKey, out_.eos_id);
    out_.content.root["post_processor"] = TemplateParts(out_.content.vocabulary, before, behind).component();
  }

  void read_byte_level(Splitting splitting) {
    Json& root = out_.content.root;
    root["normalizer"] = std::move(splitting.normalizer);
    root["pre_tokenizer"] = std::move(splitting.pre_tokenizer);
    root["decoder"] = byte_level_step(true);
    root["model"] = Json::object({{"type", "BPE"}, {"ignore_merges", splitting.ignore_merges}});
    add_template(splitting.adds_bos);
    read_merges();
  }

  void read_merges() {
    const GgufArray& array = texts(kMergesKey);
    std::vector<TokenMerge> merges;
    merges.reserve(static_cast<size_t>(array.count));
    std::string joined;
    each_gguf_text(source_, array, [&](int64_t i, std::string_view line) {
      const size_t space = line.find(' ', 1);
      if (space == std::string_view::npos || space + 1 == line.size())
        refuse_element(kMergesKey, i, "is not two tokens with a space between");
      const auto id_of = [&](std::string_view token) {
        const int32_t id = out_.content.vocabulary.find(token);
        if (id == TokenVocabulary::kNone)
          refuse_element(kMergesKey, i, "names or makes a token that the file does not have");
        return static_cast<uint32_t>(id);
      };
      const std::string_view left = line.substr(0, space), right = line.substr(space + 1);
      joined.assign(left).append(right);
      merges.push_back({id_of(left), id_of(right), static_cast<uint32_t>(i), id_of(joined)});
    });
    out_.content.merges = TokenMerges(merges);
  }

  void read_byte_fallback() {
    Json& root = out_.content.root;
    describe_spaces(flag("tokenizer.ggml.add_space_prefix", true), root);
    root["model"] = Json::object({{"type", "BPE"}, {"byte_fallback", true}, {"fuse_unk", true}});
    const std::optional<int32_t> unknown = id(kUnknownKey);
    if (unknown && out_.content.vocabulary.contains(static_cast<uint32_t>(*unknown)))
      root["model"]["unk_token"] = std::string(out_.content.vocabulary.token(static_cast<uint32_t>(*unknown)));
    add_template(true);
    merge_by_score();
  }

  std::vector<float> read_scores() const {
    std::vector<float> scores;
    const GgufArray& array = numbers(kScoresKey);
    scores.reserve(static_cast<size_t>(array.count));
    each_gguf_number(source_, array, [&](int64_t i, double score) {
      if (std::isnan(score)) refuse_element(kScoresKey, i, "is not a number");
      scores.push_back(static_cast<float>(score));
    });
    return scores;
  }

  // A higher score is merged first, of equal ones the leftmost: they share a rank.
  void merge_by_score() {
    const std::vector<float> scores = read_scores();
    std::vector<float> ranks = scores;
    std::sort(ranks.begin(), ranks.end(), std::greater<>());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    size_t count = 0;
    each_pair([&](uint32_t, uint32_t, uint32_t) { ++count; });
    std::vector<TokenMerge> merges;
    merges.reserve(count);
    each_pair([&](uint32_t left, uint32_t right, uint32_t merged) {
      const auto rank = std::lower_bound(ranks.begin(), ranks.end(), scores[merged], std::greater<>()) - ranks.begin();
      merges.push_back({left, right, static_cast<uint32_t>(rank), merged});
    });
    out_.content.merges = TokenMerges(merges);
  }

  // Calls take(left, right, merged) for all pairs of pieces that make a piece.
  template <typename Take>
  void each_pair(const Take& take) const {
    const TokenVocabulary& vocabulary = out_.content.vocabulary;
    for (uint32_t id = 0; id < vocabulary.id_limit(); ++id) {
      const std::string_view piece = vocabulary.token(id);
      if (piece.empty() || find_piece(piece) != static_cast<int32_t>(id)) continue;
      for (size_t at = decode_utf8(piece, 0).bytes; at < piece.size(); at += decode_utf8(piece, at).bytes) {
        const int32_t left = find_piece(piece.substr(0, at));
        const int32_t right = left < 0 ? left : find_piece(piece.substr(at));
        if (right >= 0) take(static_cast<uint32_t>(left), static_cast<uint32_t>(right), id);
      }
    }
  }
  int32_t find_piece(std::string_view text) const {
    const int32_t id = out_.content.vocabulary.find(text);
    return id >= 0 && is_piece(types_[static_cast<size_t>(id)]) ? id : TokenVocabulary::kNone;
  }

  const ByteSource& source_;
  const GgufHeader& header_;
  const GgufArray* tokens_ = nullptr;
  std::vector<uint8_t> types_;  // by id
  GgufTokenizer out_;
};

}  // namespace

bool has_gguf_tokenizer(const GgufHeader& header) {
  const std::string model = text_of(header, kModelKey);
  return !model.empty() && model != "no_vocab" && model != "none";
}

bool reads_gguf_tokenizer(const GgufHeader& header) {
  const std::string model = text_of(header, kModelKey);
  return model == "llama" || (model == "gpt2" && splitting_named(text_of(header, kSplittingKey)));
}

GgufTokenizer read_gguf_tokenizer(const ByteSource& source, const GgufHeader& header) {
  return Reader(source, header).read();
}

int64_t gguf_tokenizer_bytes(const ByteSource& source, const GgufHeader& header) {
  constexpr int64_t kAdded = 256;   // an entry of "added_tokens"
  constexpr int64_t kPerByte = 10;  // of a token: merges that make it and are not in the file, tables of added tokens
  int64_t bytes = 0;
  for (const char* const key : {kTokensKey, kTypesKey, kScoresKey, kMergesKey})
    if (const GgufArray* const array = find_array(header, key)) bytes += array->bytes;
  std::vector<bool> added;
  if (const GgufArray* const types = find_array(header, kTypesKey); types && types->count <= TokenVocabulary::kIdLimit)
    each_gguf_number(source, *types, [&](int64_t, double number) { added.push_back(is_added(token_type_of(number))); });
  const bool scored = text_of(header, kModelKey) == "llama";
  if (const GgufArray* const tokens = find_array(header, kTokensKey))
    each_gguf_text(source, *tokens, [&](int64_t i, std::string_view token) {
      const bool special = static_cast<size_t>(i) < added.size() && added[static_cast<size_t>(i)];
      bytes += (special ? kAdded : 0) + (special || scored ? kPerByte * static_cast<int64_t>(token.size()) : 0);
    });
  return bytes;
}

}  // namespace headroom
