#include "serve/given_template.h"

#include <fmt/format.h>

#include "base/error.h"
#include "formats/file.h"
#include "jinja/template.h"
#include "tokenizer/utf8.h"

namespace headroom {

std::string given_chat_template(const std::string& given) {
  std::string text = given, source = "--chat-template";
  if (given.find("{{") == std::string::npos && given.find("{%") == std::string::npos) {
    if (!is_file_there(given))
      throw Error(ErrorKind::usage, fmt::format("--chat-template {}: there is no such file", given),
                  "give a file with a Jinja template, or its text");
    text = read_text_file(given, jinja::Limits{}.template_bytes);
    source = given;
  }
  try {
    require_utf8(text);
  } catch (const Error& e) {
    throw Error(ErrorKind::format, fmt::format("{}: {}", source, e.what()), "convert the file to UTF-8");
  }
  jinja::Template::parse(text, source);
  return text;
}

}  // namespace headroom
