#include "tokenizer/tokenizer_place.h"

#include <system_error>
#include <utility>

#include "formats/file.h"
#include "formats/gguf_file.h"
#include "tokenizer/gguf_tokenizer.h"

namespace headroom {

namespace fs = std::filesystem;

fs::path tokenizer_place(const fs::path& model) {
  const fs::path gguf = gguf_of_model(model);
  if (gguf.empty() || !is_file_there(gguf)) return model;
  const fs::path folder = gguf.has_parent_path() ? gguf.parent_path() : ".";
  if (is_file_there(folder / "tokenizer.json")) return folder;
  return has_gguf_tokenizer(GgufFile::open(gguf).header()) ? gguf : folder;
}

bool is_gguf_tokenizer(const fs::path& place) { return is_gguf(place) && is_file_there(place); }

bool is_unread_tokenizer(const fs::path& place) {
  return is_gguf_tokenizer(place) && !reads_gguf_tokenizer(GgufFile::open(place).header());
}

int64_t tokenizer_file_bytes(const fs::path& place) {
  if (is_gguf_tokenizer(place)) {
    const GgufFile file = GgufFile::open(place);
    return gguf_tokenizer_bytes(file.source(), file.header());
  }
  std::error_code status;
  const auto size = fs::file_size(place / "tokenizer.json", status);
  return status ? 0 : static_cast<int64_t>(size);
}

int64_t tokenizer_header_bytes(const fs::path& place) {
  return is_gguf_tokenizer(place) ? GgufFile::table_bytes(place) : 0;
}

std::string gguf_chat_template(const fs::path& place) {
  const GgufFile file = GgufFile::open(place);
  const auto found = file.header().values.find("tokenizer.chat_template");
  return found != file.header().values.end() && found->second.is_string() ? found->second.get<std::string>() : "";
}

Json gguf_token_names(const fs::path& place, const Tokenizer& tokenizer) {
  const GgufFile file = GgufFile::open(place);
  Json names = Json::object();
  for (const auto& [key, name] : {std::pair{"tokenizer.ggml.unknown_token_id", "unk_token"},
                                  std::pair{"tokenizer.ggml.padding_token_id", "pad_token"}}) {
    const auto found = file.header().values.find(key);
    if (found == file.header().values.end() || !found->second.is_number_integer()) continue;
    const int64_t id = found->second.get<int64_t>();
    if (id >= 0 && id < tokenizer.vocab_size()) names[name] = tokenizer.token(static_cast<int32_t>(id));
  }
  return names;
}

}  // namespace headroom
