#include "formats/tokenizer_json_writer.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <tuple>

#include "base/error.h"
#include "formats/streamed_file.h"

namespace headroom {
namespace {

constexpr size_t kTextPiece = 65536;  // bytes of a text that memory holds at once

// A text on its way to a file.
class StreamedText {
 public:
  explicit StreamedText(const std::filesystem::path& path) : file_(path) {}

  void put(std::string_view text) {
    piece_ += text;
    if (piece_.size() >= kTextPiece) flush();
  }
  void finish() {
    flush();
    file_.finish();
  }

 private:
  void flush() {
    file_.append(std::as_bytes(std::span(piece_)));
    piece_.clear();
  }

  StreamedFile file_;
  std::string piece_;
};

// Elements of a list or object, a line each.
class Elements {
 public:
  explicit Elements(StreamedText& text) : text_(text) {}

  void put(std::string_view element) {
    text_.put(first_ ? "\n" : ",\n");
    text_.put(element);
    first_ = false;
  }

 private:
  StreamedText& text_;
  bool first_ = true;
};

std::string json_text(std::string_view token) { return Json(std::string(token)).dump(); }

void put_added_tokens(const Json& root, StreamedText& text) {
  const auto added = root.find("added_tokens");
  if (added == root.end()) return;
  Elements elements(text);
  for (const Json& token : *added) {
    Json whole = token;
    for (const char* const flag : {"single_word", "lstrip", "rstrip"}) whole.emplace(flag, false);
    elements.put(whole.dump());
  }
}

void put_vocabulary(const TokenVocabulary& vocabulary, StreamedText& text) {
  Elements elements(text);
  for (uint32_t id = 0; id < vocabulary.id_limit(); ++id)
    if (vocabulary.contains(id) && vocabulary.find(vocabulary.token(id)) == static_cast<int32_t>(id))
      elements.put(fmt::format("{}:{}", json_text(vocabulary.token(id)), id));
}

void put_merges(const TokenizerJson& json, StreamedText& text) {
  Elements elements(text);
  for (const TokenMerge& merge : listed_merges(json.merges))
    elements.put(fmt::format("[{},{}]", json_text(json.vocabulary.token(merge.left)),
                             json_text(json.vocabulary.token(merge.right))));
}

}  // namespace

std::vector<TokenMerge> listed_merges(const TokenMerges& merges) {
  std::vector<TokenMerge> listed;
  listed.reserve(merges.size());
  std::copy_if(merges.slots().begin(), merges.slots().end(), std::back_inserter(listed),
               [](const TokenMerge& slot) { return slot.rank != TokenMerges::kFree; });
  std::sort(listed.begin(), listed.end(), [](const TokenMerge& a, const TokenMerge& b) {
    return std::tie(a.rank, a.merged, a.left, a.right) < std::tie(b.rank, b.merged, b.left, b.right);
  });
  return listed;
}

void write_tokenizer_json(const TokenizerJson& json, const std::filesystem::path& path) {
  HR_CHECK(json.kind == TokenModelKind::bpe, "{} is not byte-pair encoding", json.source);
  StreamedText text(path);
  text.put("{\"version\":\"1.0\",\n\"truncation\":null,\n\"padding\":null,\n\"added_tokens\":[");
  put_added_tokens(json.root, text);
  text.put("],\n");
  for (const char* const name : {"normalizer", "pre_tokenizer", "post_processor", "decoder"})
    text.put(fmt::format("\"{}\":{},\n", name, json.root.value(name, Json()).dump()));
  text.put("\"model\":{");
  for (const auto& [name, value] : json.root.at("model").items())
    text.put(fmt::format("{}:{},\n", json_text(name), value.dump()));
  text.put("\"vocab\":{");
  put_vocabulary(json.vocabulary, text);
  text.put("},\n\"merges\":[");
  put_merges(json, text);
  text.put("]}}\n");
  text.finish();
}

}  // namespace headroom
