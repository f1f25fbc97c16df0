#include "data/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/error.h"
#include "data/token_cache_format.h"
#include "formats/file.h"
#include "formats/token_names.h"
#include "tokenizer/tokenizer_place.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kTemplateFile = "chat_template.jinja";
constexpr std::array<const char*, 3> kFiles = {kTemplateFile, kConfig, "special_tokens_map.json"};
constexpr std::array<const char*, 7> kTokens = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                "pad_token", "cls_token", "mask_token"};

std::string read_whole(const std::filesystem::path& path, int64_t limit) {
  const File file = File::open(path);
  if (file.size() > limit)
    throw Error(ErrorKind::format,
                fmt::format("{} has {} bytes, at most {} are read", path.string(), file.size(), limit),
                "correct or re-download the file");
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void require_utf8_of(std::string_view text, const std::string& source) {
  try {
    require_utf8(text);
  } catch (const Error& e) {
    throw Error(ErrorKind::format, fmt::format("{}: {}", source, e.what()), "convert the file to UTF-8");
  }
}

[[noreturn]] void refuse_missing(const std::filesystem::path& folder) {
  throw Error(
      ErrorKind::usage,
      fmt::format("{} has no chat template", (folder.empty() ? kConfig : (folder / kConfig).string())),
      "rows of {\"messages\"} need one: put chat_template.jinja next to tokenizer.json, or set \"chat_template\" in "
      "tokenizer_config.json, or render the conversations into {\"prompt\",\"completion\"} rows");
}

// The template's text in the configuration, if it has one.
std::optional<std::string> configured_template(const Json& config, const std::string& source) {
  if (!config.is_object() || !config.contains("chat_template") || config["chat_template"].is_null())
    return std::nullopt;
  const Json& value = config["chat_template"];
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array())
    for (const Json& entry : value)
      if (entry.is_object() && entry.value("name", Json()) == "default" && entry.contains("template") &&
          entry["template"].is_string())
        return entry["template"].get<std::string>();
  throw Error(ErrorKind::format, fmt::format("{}: chat_template is not a string and has no \"default\"", source),
              "give the template as a text, or as a list with the name \"default\"");
}

// The token in the member `name`, which is a string or an object with "content".
std::optional<std::string> token_of(const Json& config, const char* name) {
  if (!config.is_object() || !config.contains(name)) return std::nullopt;
  const Json& value = config[name];
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content") && value["content"].is_string())
    return value["content"].get<std::string>();
  return std::nullopt;
}

std::optional<std::string> known_token(const Tokenizer& tokenizer, std::string_view name) {
  const auto id = name == "bos_token" ? tokenizer.bos_id() : name == "eos_token" ? tokenizer.eos_id() : std::nullopt;
  return id ? std::optional(tokenizer.token(*id)) : std::nullopt;
}

Json read_if_there(const std::filesystem::path& path) { return is_file_there(path) ? read_token_names(path) : Json(); }

ChatTemplate load_gguf_template(const std::filesystem::path& file, const Tokenizer& tokenizer) {
  const std::string text = gguf_chat_template(file), source = file.string() + ": tokenizer.chat_template";
  if (text.empty())
    throw Error(ErrorKind::usage, source + " is missing",
                "rows of {\"messages\"} need one: put the model's tokenizer.json and chat_template.jinja next to the "
                "file, or render the conversations into {\"prompt\",\"completion\"} rows");
  require_utf8_of(text, source);
  return make_chat_template(text, source, file, tokenizer);
}

}  // namespace

bool has_chat_template(const std::filesystem::path& folder) {
  if (folder.empty()) return false;
  if (is_gguf_tokenizer(folder)) return !gguf_chat_template(folder).empty();
  if (is_file_there(folder / kTemplateFile)) return true;
  const Json config = read_if_there(folder / kConfig);
  return config.is_object() && config.contains("chat_template") && !config["chat_template"].is_null();
}

ChatTemplate load_chat_template(const std::filesystem::path& folder, const Tokenizer& tokenizer) {
  if (folder.empty()) refuse_missing(folder);
  if (is_gguf_tokenizer(folder)) return load_gguf_template(folder, tokenizer);
  const Json config = read_if_there(folder / kConfig);
  const std::filesystem::path file = folder / kTemplateFile;
  std::string source = fmt::format("{}: chat template", (folder / kConfig).string());
  std::optional<std::string> text;
  if (is_file_there(file)) {
    text = read_whole(file, jinja::Limits{}.template_bytes);
    source = file.string();
    require_utf8_of(*text, source);
  } else {
    text = configured_template(config, (folder / kConfig).string());
  }
  if (!text) refuse_missing(folder);
  return make_chat_template(*text, std::move(source), folder, tokenizer);
}

ChatTemplate make_chat_template(const std::string& text, std::string source, const std::filesystem::path& folder,
                                const Tokenizer& tokenizer) {
  const bool gguf = is_gguf_tokenizer(folder);
  const Json config = gguf ? gguf_token_names(folder, tokenizer) : read_if_there(folder / kConfig);
  const Json map = read_if_there(folder / kFiles[2]);
  ChatTemplate chat{jinja::Template::parse(text, std::move(source)), {}};
  for (const char* name : kTokens) {
    auto token = token_of(config, name);
    if (!token) token = token_of(map, name);
    if (!token) token = known_token(tokenizer, name);
    if (token) chat.special_tokens.emplace_back(name, *token);
  }
  return chat;
}

uint64_t chat_template_key(const std::filesystem::path& folder) {
  Checksum key;
  if (is_gguf_tokenizer(folder)) {
    const std::string text = gguf_chat_template(folder);
    key.add(std::as_bytes(std::span(text)));
    return text.empty() ? 0 : key.value();
  }
  bool any = false;
  for (const char* name : kFiles) {
    if (folder.empty() || !is_file_there(folder / name)) continue;
    any = true;
    const File file = File::open(folder / name);
    std::array<std::byte, 4096> block;
    int64_t size = 0;
    while (const int64_t n = file.read_some_at(size, block)) {
      key.add(std::span(block).first(static_cast<size_t>(n)));
      size += n;
    }
    key.add_value(static_cast<uint64_t>(size));
  }
  return any ? key.value() : 0;
}

}  // namespace headroom
