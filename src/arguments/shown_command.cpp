#include "arguments/shown_command.h"

#include <fmt/format.h>

#include <algorithm>

namespace headroom {
namespace {

std::string quoted(const std::string& text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::vector<std::string> given_values(const CLI::Option& option) {
  return option.count() > 0 ? option.reduced_results() : std::vector<std::string>{};
}

}  // namespace

std::string shown_command(std::string_view command, const CLI::App& app, const std::vector<std::string>& names,
                          const NamedValues& changes) {
  std::string out = fmt::format("headroom {}", command);
  for (const std::string& name : names) {
    const CLI::Option* option = app.get_option_no_throw("--" + name);
    if (!option) continue;
    std::vector<std::string> values = given_values(*option);
    const auto is_changed = [&](const auto& change) { return change.first == name; };
    if (name != "technique" && std::any_of(changes.begin(), changes.end(), is_changed)) values.clear();
    for (const auto& change : changes)
      if (is_changed(change) && !change.second.empty()) values.push_back(change.second);
    const bool is_flag = option->get_items_expected_max() == 0;
    for (const std::string& value : values) out += fmt::format(" --{}{}", name, is_flag ? "" : " " + quoted(value));
  }
  return out;
}

std::string shown_training(const CLI::App& app, const std::vector<std::string>& names, const TrainOptions& options,
                           NamedValues changes) {
  const bool trains = !options.data.train.empty();
  if (trains && options.saving.output_dir.empty()) changes.emplace_back("output-dir", "run");
  return shown_command(trains ? "train" : "plan", app, names, changes);
}

}  // namespace headroom
