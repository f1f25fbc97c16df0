// Options of the public API, as the calls of the engine take them.
#pragma once

#include "arguments/parse.h"
#include "headroom/engine.h"

namespace headroom::api {

// An app with the options of one kind of call.
template <typename Arguments>
struct Parser {
  explicit Parser(void (*add)(CLI::App&, Arguments&)) { add(app, arguments); }
  CLI::App app;
  Arguments arguments;
};

// The session's options as far as the call knows them, then the call's own.
template <typename Arguments>
void parse(Parser<Arguments>& parser, const std::string& model, const Options& shared, const Options& own) {
  NamedValues values{{"model", model}};
  for (const auto& option : shared)
    if (has_option(parser.app, option.first)) values.push_back(option);
  values.insert(values.end(), own.begin(), own.end());
  parse_values(parser.app, values);
}

}  // namespace headroom::api
