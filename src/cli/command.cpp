#include "cli/command.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "base/bytes.h"
#include "base/error.h"
#include "base/nearest_name.h"
#include "cli/terminal.h"
#include "formats/run_file.h"

namespace headroom {
namespace {

constexpr const char* kVersion = HEADROOM_VERSION;
constexpr int kExitRun = 1, kExitUsage = 2, kExitFit = 3;

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  return names;
}

// Turns a leading YAML file of `train` or `plan` into options placed before the others, so that the command line wins.
std::vector<std::string> expand_run_file(std::vector<std::string> arguments, const CLI::App& app) {
  const auto is_yaml = [](const std::string& a) { return a.ends_with(".yaml") || a.ends_with(".yml"); };
  if (arguments.size() < 2 || !is_yaml(arguments[1])) return arguments;
  std::vector<std::string> out{arguments[0]};
  const std::vector<std::string> names = option_names(app);
  for (const RunFileEntry& entry : read_run_file(arguments[1])) {
    if (std::find(names.begin(), names.end(), entry.key) == names.end())
      throw Error(ErrorKind::usage, fmt::format("{}:{}: unknown key '{}'", arguments[1], entry.line, entry.key),
                  fmt::format("did you mean '{}'?", nearest_name(entry.key, names)));
    for (const std::string& value : entry.values) out.push_back(fmt::format("--{}={}", entry.key, value));
  }
  out.insert(out.end(), arguments.begin() + 2, arguments.end());
  return out;
}

int report(const Error& error) {
  print_error(error.what(), error.remedy());
  switch (error.kind()) {
    case ErrorKind::usage:
    case ErrorKind::format:
      return kExitUsage;
    case ErrorKind::does_not_fit:
      return kExitFit;
    case ErrorKind::run:
      return kExitRun;
  }
  return kExitRun;
}

// A result that did not reach stdout is a failure.
int flushed(int code) {
  std::cout.flush();
  if (std::fflush(stdout) != 0 || !std::cout)
    throw Error(ErrorKind::run, fmt::format("cannot write to standard output: {}", std::strerror(errno)),
                "free disk space, or check where it goes");
  return code;
}

struct Declared {
  Command command;
  CLI::App* app = nullptr;
  std::function<int()> run;
};

std::string kind_of_value(const std::string& type) {
  if (type == "FLOAT") return "a number";
  if (type == "INT") return "a whole number";
  if (type == "UINT") return "a whole number from 0";
  if (type == "BOOLEAN") return "true or false";
  return "of kind " + type;
}

// What went wrong, in our words: "--max-steps many is not a whole number".
std::string parse_message(const CLI::ParseError& error, const CLI::App& app) {
  const std::string text = error.what();
  if (const std::string start = "Could not convert: "; text.starts_with(start)) {
    const size_t equals = text.find(" = ");
    const std::string name = text.substr(start.size(), equals - start.size());
    const CLI::Option* option = app.get_option_no_throw(name);
    return fmt::format("{} {} is not {}", name, text.substr(std::min(text.size(), equals + 3)),
                       kind_of_value(option ? option->get_type_name() : "VALUE"));
  }
  if (error.get_name() == "ArgumentMismatch") return fmt::format("{} has no value", text.substr(0, text.find(':')));
  if (text == "A subcommand is required") return "no command is given";
  if (const size_t colon = text.find("not expected: "); colon != std::string::npos)
    return fmt::format("unexpected argument '{}'", text.substr(colon + 14));
  return text;
}

int report_parse_error(const CLI::ParseError& error, CLI::App& root, const std::vector<Declared>& commands) {
  if (error.get_exit_code() == 0) return root.exit(error);
  const CLI::App* app = &root;
  for (const Declared& declared : commands)
    if (declared.app->parsed()) app = declared.app;
  std::string remedy =
      fmt::format("see `headroom {}{}--help`", app == &root ? "" : app->get_name(), app == &root ? "" : " ");
  std::string message = parse_message(error, *app);
  const std::vector<std::string> extras = root.remaining(true);
  if (!extras.empty() && extras.back().size() + extras.front().size() > 0) {
    const std::string wrong = extras.front().substr(0, extras.front().find('='));
    if (wrong.starts_with("--")) {
      message = fmt::format("unknown option '{}'", wrong);
      remedy = fmt::format("did you mean '--{}'? {}", nearest_name(wrong.substr(2), option_names(*app)), remedy);
    } else if (app == &root) {
      std::vector<std::string> names;
      for (const Declared& declared : commands) names.push_back(declared.command.name);
      message = fmt::format("unknown command '{}'", wrong);
      remedy = fmt::format("did you mean '{}'? {}", nearest_name(wrong, names), remedy);
    }
  }
  print_error(message, remedy);
  return kExitUsage;
}

}  // namespace

CLI::Option* memory_option(CLI::App& app, const std::string& name, int64_t& bytes, const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [&bytes, name](const std::string& text) {
            bytes = parse_bytes(text);
            if (bytes < (int64_t{1} << 20))
              throw Error(ErrorKind::usage, fmt::format("{} {} is {} bytes", name, text, bytes),
                          fmt::format("a bare number is bytes; did you mean {}GiB?", text));
          },
          help)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->type_name("SIZE");
}

int run_command_line(std::vector<std::string> arguments) {
  CLI::App root{
      "headroom trains and serves networks inside a memory budget: memory is an input.\n\n"
      "  headroom plan  --model M --memory 8GiB            what fits, and why\n"
      "  headroom train --model M --data D --memory 8GiB --output-dir O\n"};
  root.name("headroom");
  root.set_version_flag("--version", std::string("headroom ") + kVersion);
  root.require_subcommand(1);
  root.failure_message([](const CLI::App*, const CLI::Error&) { return std::string(); });
  std::vector<Declared> commands;
  for (Command& command :
       std::vector<Command>{init_command(), info_command(), plan_command(), train_command(), generate_command(),
                            evaluate_command(), tokenize_command(), profile_command()}) {
    CLI::App* app = root.add_subcommand(command.name, command.description);
    std::function<int()> run = command.declare(*app);
    commands.push_back({std::move(command), app, std::move(run)});
  }
  try {
    for (const Declared& declared : commands)
      if (!arguments.empty() && arguments[0] == declared.command.name)
        arguments = expand_run_file(std::move(arguments), *declared.app);
    std::reverse(arguments.begin(), arguments.end());
    root.parse(arguments);
    for (const Declared& declared : commands)
      if (declared.app->parsed()) return flushed(declared.run());
    return kExitUsage;
  } catch (const CLI::ParseError& error) {
    return report_parse_error(error, root, commands);
  } catch (const Error& error) {
    return report(error);
  } catch (const InternalError& error) {
    print_error(error.what(), "this is a defect of headroom: please report it with the command line");
    return kExitRun;
  } catch (const std::bad_alloc&) {
    print_error("out of memory", "give a smaller --memory, or free memory");
    return kExitRun;
  } catch (const std::exception& error) {
    print_error(error.what(), "");
    return kExitRun;
  }
}

}  // namespace headroom
