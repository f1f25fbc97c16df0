// Parses options of the public API into the arguments of the engine's calls.
#pragma once

#include "arguments/parse.h"
#include "headroom/engine.h"

namespace headroom::api {

// A parser of the options of one kind of call.
template <typename Arguments>
struct Parser {
  explicit Parser(void (*add)(CLI::App&, Arguments&)) { add(app, arguments); }
  CLI::App app;
  Arguments arguments;
};

// Parses the session's options that this call has, then the call's own.
template <typename Arguments>
void parse(Parser<Arguments>& parser, const std::string& model, const Options& shared, const Options& own) {
  NamedValues values{{"model", model}};
  for (const auto& option : shared)
    if (has_option(parser.app, option.first)) values.push_back(option);
  values.insert(values.end(), own.begin(), own.end());
  parse_values(parser.app, values);
}

}  // namespace headroom::api
