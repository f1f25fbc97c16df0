#include "tokenizer/tokenizer.h"

#include <utility>

#include "base/error.h"
#include "formats/gguf_file.h"
#include "formats/tokenizer_json.h"
#include "tokenizer/gguf_tokenizer.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/tokenizer_place.h"
#include "tokenizer/utf8.h"

namespace headroom {

namespace {

std::shared_ptr<const TokenizerPipeline> load_gguf(const std::filesystem::path& path) {
  GgufTokenizer read;
  {
    const GgufFile file = GgufFile::open(path);
    read = read_gguf_tokenizer(file.source(), file.header());
  }
  auto pipeline = std::make_shared<TokenizerPipeline>(std::move(read.content));
  pipeline->bos_id = read.bos_id;
  pipeline->eos_id = read.eos_id;
  if (!read.bos_id && !read.eos_id) find_special_tokens({}, *pipeline);
  return pipeline;
}

}  // namespace

Tokenizer Tokenizer::load(const std::filesystem::path& folder_or_file) {
  if (is_gguf_tokenizer(folder_or_file)) return Tokenizer(load_gguf(folder_or_file));
  std::error_code status;
  const bool folder = std::filesystem::is_directory(folder_or_file, status);
  const std::filesystem::path file = folder ? folder_or_file / "tokenizer.json" : folder_or_file;
  auto pipeline = std::make_shared<TokenizerPipeline>(read_tokenizer_json(file));
  const std::filesystem::path beside = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  find_special_tokens(beside, *pipeline);
  return Tokenizer(std::move(pipeline));
}

Tokenizer Tokenizer::from_json(std::string_view text, const std::string& source) {
  auto pipeline = std::make_shared<TokenizerPipeline>(parse_tokenizer_json(text, source));
  find_special_tokens({}, *pipeline);
  return Tokenizer(std::move(pipeline));
}

Tokenizer Tokenizer::bytes() { return from_json(bytes_tokenizer_json(), "the built-in tokenizer \"bytes\""); }

std::vector<int32_t> Tokenizer::encode(std::string_view utf8, bool add_special_tokens) const {
  require_utf8(utf8);
  const PostProcessor& around = pipeline_->post_processor();
  std::vector<int32_t> ids;
  if (add_special_tokens) ids = around.prefix;
  pipeline_->encode(utf8, ids);
  if (add_special_tokens) ids.insert(ids.end(), around.suffix.begin(), around.suffix.end());
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  DecoderChain chain(pipeline_->decoder());
  std::string text;
  for (const int32_t id : ids)
    if (const auto token = pipeline_->token(id, skip_special)) chain.take(*token, text);
  chain.finish(text);
  return text;
}

int64_t Tokenizer::vocab_size() const { return pipeline_->vocab_size(); }
std::optional<int32_t> Tokenizer::bos_id() const { return pipeline_->bos_id; }
std::optional<int32_t> Tokenizer::eos_id() const { return pipeline_->eos_id; }
std::optional<int32_t> Tokenizer::token_id(std::string_view content) const { return pipeline_->id(content); }
std::string Tokenizer::token(int32_t id) const { return std::string(pipeline_->token(id, false).value_or("")); }

bool Tokenizer::adds_bos() const {
  const std::vector<int32_t>& prefix = pipeline_->post_processor().prefix;
  return !prefix.empty() && prefix.front() == bos_id();
}

bool Tokenizer::adds_eos() const {
  const std::vector<int32_t>& suffix = pipeline_->post_processor().suffix;
  return !suffix.empty() && suffix.back() == eos_id();
}

int64_t Tokenizer::memory_bytes() const { return pipeline_->memory_bytes(); }

}  // namespace headroom
