#include "tokenizer/tokenizer_files.h"

#include <optional>
#include <string>
#include <utility>

#include "formats/atomic_dir.h"
#include "formats/gguf_file.h"
#include "formats/tokenizer_json_writer.h"
#include "tokenizer/gguf_tokenizer.h"
#include "tokenizer/tokenizer_place.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

// tokenizer_config.json: with BOS and EOS, even if there is none, no reader guesses them.
Json named_tokens(const std::filesystem::path& gguf) {
  const Tokenizer tokenizer = Tokenizer::load(gguf);
  Json names = gguf_token_names(gguf, tokenizer);
  for (const auto& [name, id] :
       {std::pair{"bos_token", tokenizer.bos_id()}, std::pair{"eos_token", tokenizer.eos_id()}})
    names[name] = id ? tokenizer.token(*id) : std::string();
  for (Json& token : names)
    if (token == "") token = nullptr;
  names["tokenizer_class"] = "PreTrainedTokenizerFast";
  names["clean_up_tokenization_spaces"] = false;
  if (const std::string chat = gguf_chat_template(gguf); !chat.empty() && check_utf8(chat).valid == chat.size())
    names["chat_template"] = chat;
  return names;
}

void write_content(const std::filesystem::path& gguf, const std::filesystem::path& to) {
  const GgufFile file = GgufFile::open(gguf);
  write_tokenizer_json(read_gguf_tokenizer(file.source(), file.header()).content, to);
}

}  // namespace

void write_tokenizer_files(const std::filesystem::path& gguf, const std::filesystem::path& folder) {
  write_text_durably(folder / kTokenizerFiles[1], named_tokens(gguf).dump(2) + "\n");
  write_content(gguf, folder / kTokenizerFiles[0]);
}

}  // namespace headroom
