#include "cli/command_line.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "arguments/familiar_names.h"
#include "base/bytes.h"
#include "base/error.h"
#include "cli/messages.h"

namespace headroom {
namespace {

constexpr int kExitRun = 1, kExitUsage = 2, kExitFit = 3;

// Whether `text` holds `part` where no longer word of options does.
bool holds_word(std::string_view text, std::string_view part) {
  const auto continues = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_'; };
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    const size_t end = at + part.size();
    if ((at == 0 || !continues(text[at - 1])) && (end == text.size() || !continues(text[end]))) return true;
  }
  return false;
}

// Wrong usage of an option that stands in a file names its line there.
std::string with_place(const std::string& message, const std::vector<PlacedValue>& places) {
  const std::string place = place_of_refusal(message, places);
  return place.empty() ? message : fmt::format("{}: {}", place, message);
}

int report(const Error& error, const std::vector<PlacedValue>& places) {
  print_error(error.kind() == ErrorKind::usage ? with_place(error.what(), places) : error.what(), error.remedy());
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

// A result that did not reach stdout is a failure; one whose reader has gone (`| head`) needs no words.
int flushed(int code) {
  std::cout.flush();
  if (std::fflush(stdout) != 0 || !std::cout) {
    if (errno == EPIPE) return kExitRun;
    throw Error(ErrorKind::run, fmt::format("cannot write to standard output: {}", std::strerror(errno)),
                "free disk space, or check where the output goes");
  }
  return code;
}

struct Declared {
  Command command;
  CLI::App* app = nullptr;
  std::function<int()> run;
};

// "see `headroom plan --help`"; a program of one command needs no name of it.
std::string help_hint(const CLI::App& root, const CLI::App& app, size_t commands) {
  const bool named = &app != &root && commands > 1;
  return fmt::format("see `{} {}{}--help`", root.get_name(), named ? app.get_name() : "", named ? " " : "");
}

int report_parse_error(const CLI::ParseError& error, CLI::App& root, const std::vector<Declared>& commands,
                       const std::vector<PlacedValue>& places) {
  if (error.get_exit_code() == 0) return root.exit(error);
  const CLI::App* app = &root;
  for (const Declared& declared : commands)
    if (declared.app->parsed()) app = declared.app;
  std::string remedy = help_hint(root, *app, commands.size());
  std::string message = parse_message(error, *app);
  const std::vector<std::string> extras = root.remaining(true);
  if (!extras.empty() && extras.back().size() + extras.front().size() > 0) {
    const std::string wrong = extras.front().substr(0, extras.front().find('='));
    if (const size_t name = wrong.find_first_not_of('-'); name > 0 && name < wrong.size()) {
      message = fmt::format("unknown option '{}'", wrong);
      const std::string meant = familiar_option(wrong.substr(name), option_names(*app));
      if (!meant.empty()) remedy = fmt::format("did you mean '--{}'? {}", meant, remedy);
    } else if (app == &root) {
      std::vector<std::string> names;
      for (const Declared& declared : commands) names.push_back(declared.command.name);
      message = fmt::format("unknown command '{}'", wrong);
      const std::string meant = familiar_option(wrong, names);
      if (!meant.empty()) remedy = fmt::format("did you mean '{}'? {}", meant, remedy);
    }
  }
  print_error(with_place(message, places), remedy);
  return kExitUsage;
}

}  // namespace

std::string place_of_refusal(const std::string& message, const std::vector<PlacedValue>& places) {
  const auto first = [&](auto&& is_meant) {
    const auto at = std::find_if(places.begin(), places.end(), is_meant);
    return at == places.end() ? std::string() : at->place;
  };
  const auto named = [&](const PlacedValue& placed) { return holds_word(message, placed.option); };
  const auto shown = [&](const PlacedValue& placed) {
    return !placed.value.empty() && holds_word(message, placed.value);
  };
  std::string place = first([&](const PlacedValue& placed) { return named(placed) && shown(placed); });
  if (place.empty()) place = first(named);
  const auto quoted = [&](const std::string& text) { return message.find('\'' + text + '\'') != std::string::npos; };
  if (place.empty())  // "there is no technique 'recompote'" of technique: recompote=on
    place = first([&](const PlacedValue& placed) {
      return quoted(placed.value) || quoted(placed.value.substr(0, placed.value.find('=')));
    });
  if (place.empty())  // "cannot read absent.jsonl"
    place = first([&](const PlacedValue& placed) {
      return shown(placed) && placed.value.find_first_of("./") != std::string::npos;
    });
  return place;
}

int run_commands(const std::string& name, const std::string& about, std::vector<Command> commands_given,
                 std::vector<std::string> arguments) {
  CLI::App root{about};
  root.name(name);
  root.set_version_flag("--version", name + " " + HEADROOM_VERSION);
  root.require_subcommand(1);
  root.failure_message([](const CLI::App*, const CLI::Error&) { return std::string(); });
  std::vector<Declared> commands;
  std::vector<PlacedValue> places;
  for (Command& command : commands_given) {
    CLI::App* app = root.add_subcommand(command.name, command.description);
    // Options stay as long as the command runs: those of all commands together take about half a megabyte.
    const bool meant = commands_given.size() == 1 || std::ranges::find(arguments, command.name) != arguments.end();
    std::function<int()> run = meant ? command.declare(*app) : nullptr;
    commands.push_back({std::move(command), app, std::move(run)});
  }
  try {
    for (const Declared& declared : commands)
      if (!arguments.empty() && arguments[0] == declared.command.name && declared.command.expand) {
        ExpandedArguments expanded = declared.command.expand(std::move(arguments), *declared.app);
        arguments = std::move(expanded.arguments);
        places = std::move(expanded.places);
      }
    for (const Declared& declared : commands)
      if (!arguments.empty() && arguments[0] == declared.command.name)
        arguments = with_switches_on(arguments, *declared.app);
    std::reverse(arguments.begin(), arguments.end());
    root.parse(arguments);
    for (const Declared& declared : commands)
      if (declared.app->parsed()) return flushed(declared.run());
    return kExitUsage;
  } catch (const CLI::ParseError& error) {
    return report_parse_error(error, root, commands, places);
  } catch (const Error& error) {
    return report(error, places);
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
