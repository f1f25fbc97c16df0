#include "formats/tokenizer_json.h"

#include <cerrno>
#include <fstream>
#include <functional>
#include <new>
#include <optional>
#include <utility>

#include "base/error.h"
#include "formats/tokenizer_sax.h"

namespace headroom {
namespace {

constexpr int64_t kFileLimit = int64_t{1} << 30;

[[noreturn]] void refuse(const std::string& source, const std::string& problem) {
  throw Error(ErrorKind::format, fmt::format("{}: {}", source, problem), "correct or re-download the tokenizer.json");
}

// Parses the whole text, again for each call, with the given handler.
using Pass = std::function<void(TokenizerSax&)>;

TokenModelKind kind_of_model(const Json& root, const TokenizerSax& parsed, const std::string& source) {
  const auto model = root.find("model");
  if (model == root.end() || !model->is_object()) refuse(source, "there is no object \"model\"");
  const auto type = model->find("type");
  if (type != model->end()) {
    if (!type->is_string()) refuse(source, "model.type is not a string");
    return TokenizerSax::kind_of_model(type->get<std::string>(), source);
  }
  // Files from 2019 to 2020 have no type; their members tell.
  if (parsed.saw_pieces()) return TokenModelKind::unigram;
  return model->contains("continuing_subword_prefix") && !parsed.saw_merges() ? TokenModelKind::word_piece
                                                                              : TokenModelKind::bpe;
}

TokenizerJson parse(const Pass& pass, const std::string& source) {
  TokenizerJson result;
  result.source = source;
  TokenizerSax first(source);
  pass(first);
  result.root = std::move(first).take_root();
  if (!result.root.is_object()) refuse(source, "the top level is not an object");
  result.kind = kind_of_model(result.root, first, source);
  if (result.kind == TokenModelKind::unigram) {
    if (!first.saw_pieces()) refuse(source, "there is no list model.vocab");
    result.scores = std::move(first).take_scores();
    result.vocabulary = std::move(first).take_vocabulary();
    return result;
  }
  if (!first.saw_vocabulary()) refuse(source, "there is no object model.vocab");
  if (result.kind == TokenModelKind::bpe && !first.saw_merges()) refuse(source, "there is no list model.merges");
  if (result.kind == TokenModelKind::word_piece) {
    result.vocabulary = std::move(first).take_vocabulary();
  } else if (first.merges_before_vocabulary()) {
    result.vocabulary = std::move(first).take_vocabulary();
    TokenizerSax second(source, &result.vocabulary);
    pass(second);
    result.merges = TokenMerges(std::move(second).take_merges());
  } else {
    result.vocabulary = std::move(first).take_vocabulary();
    result.merges = TokenMerges(std::move(first).take_merges());
  }
  return result;
}

}  // namespace

TokenizerJson parse_tokenizer_json(std::string_view text, const std::string& source) {
  return parse([&](TokenizerSax& sax) { Json::sax_parse(text.begin(), text.end(), &sax); }, source);
}

TokenizerJson read_tokenizer_json(const std::filesystem::path& path) {
  std::error_code status;
  const auto size = std::filesystem::file_size(path, status);
  if (status)
    throw Error(ErrorKind::usage, fmt::format("cannot read {}: {}", path.string(), status.message()),
                "give a tokenizer.json, or a folder that holds one");
  if (size > static_cast<uintmax_t>(kFileLimit))
    refuse(path.string(), fmt::format("{} bytes are too many for a tokenizer.json", size));
  return parse(
      [&](TokenizerSax& sax) {
        std::ifstream in(path, std::ios::binary);
        if (!in && errno == ENOMEM) throw std::bad_alloc();
        if (!in)
          throw Error(ErrorKind::usage, fmt::format("cannot read {}", path.string()), "check the file's permissions");
        Json::sax_parse(in, &sax);
      },
      path.string());
}

}  // namespace headroom
