#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "cli/command.h"
#include "formats/json.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_place.h"

namespace headroom {
namespace {

struct TokenizeArguments {
  std::string model;
  std::string tokenizer;
  bool decode = false;
  bool no_special = false;
};

std::vector<int32_t> read_ids(const Json& row, const std::string& place) {
  std::vector<int32_t> ids;
  for (const Json& id : row.get_ref<const Json::array_t&>()) {
    if (!id.is_number_integer() || id < 0 || id > INT32_MAX)
      throw Error(ErrorKind::format, fmt::format("{}: {} is not a token id", place, id.dump()),
                  "ids are whole numbers from 0");
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

std::string answer(const Tokenizer& tokenizer, const TokenizeArguments& arguments, const std::string& line,
                   const std::string& place) {
  const char* const remedy = arguments.decode ? "write one JSON object a line: {\"ids\": [1, 2]}"
                                              : "write one JSON object a line: {\"text\": \"...\"}";
  Json row = Json::object();
  try {
    row = parse_json(line, place);
  } catch (const Error& error) {
    throw Error(ErrorKind::format, error.what(), remedy);
  }
  try {
    if (arguments.decode) return Json{{"text", tokenizer.decode(read_ids(row.at("ids"), place))}}.dump();
    return Json{{"ids", tokenizer.encode(row.at("text").get_ref<const std::string&>(), !arguments.no_special)}}.dump();
  } catch (const Json::exception&) {
    throw Error(ErrorKind::format, fmt::format("{}: no row with {}", place, arguments.decode ? "\"ids\"" : "\"text\""),
                remedy);
  }
}

int run_tokenize(const TokenizeArguments& arguments) {
  if (arguments.model.empty() == arguments.tokenizer.empty())
    throw Error(ErrorKind::usage, "no tokenizer", "give --model DIR or --tokenizer FILE");
  const std::filesystem::path place =
      arguments.model.empty() ? std::filesystem::path(arguments.tokenizer) : tokenizer_place(arguments.model);
  const Tokenizer tokenizer = Tokenizer::load(place);
  int64_t number = 0;
  for (std::string line; std::getline(std::cin, line);) {
    const std::string place = fmt::format("standard input:{}", ++number);
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::cout << answer(tokenizer, arguments, line, place) << '\n';
  }
  return 0;
}

}  // namespace

Command tokenize_command() {
  return {"tokenize", "text to ids and back, JSON lines on stdin and stdout", [](CLI::App& app) {
            auto arguments = std::make_shared<TokenizeArguments>();
            scalar(app, "--model", arguments->model, "model directory, or a .gguf");
            scalar(app, "--tokenizer", arguments->tokenizer, "tokenizer.json");
            app.add_flag("--decode", arguments->decode, "ids to text; special tokens are dropped");
            app.add_flag("--no-special-tokens", arguments->no_special, "do not add BOS and EOS");
            return [arguments] { return run_tokenize(*arguments); };
          }};
}

}  // namespace headroom
