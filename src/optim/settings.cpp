#include "optim/settings.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "optim/optimizer.h"

namespace headroom {
namespace {

std::optional<double> parse_value(const OptimizerOption& option, std::string_view text) {
  if (option.flag && (text == "true" || text == "True")) return 1;
  if (option.flag && (text == "false" || text == "False")) return 0;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (option.flag) return value == 0 || value == 1 ? std::optional(value) : std::nullopt;
  return value >= option.least && value < option.below ? std::optional(value) : std::nullopt;
}

std::string value_text(const OptimizerOption& option, double value) {
  if (option.flag) return value != 0 ? "true" : "false";
  return fmt::format("{}", value);
}

std::string range_text(const OptimizerOption& option) {
  return option.flag ? "true or false" : fmt::format("{} <= v < {}", option.least, option.below);
}

[[noreturn]] void refuse(std::string message, std::string remedy) {
  throw Error(ErrorKind::usage, std::move(message), std::move(remedy));
}

const OptimizerOption* find_option(const Optimizer& optimizer, std::string_view name) {
  for (const OptimizerOption& option : optimizer.options())
    if (option.name == name) return &option;
  return nullptr;
}

[[noreturn]] void refuse_stranger(const Optimizer& optimizer, std::string_view key) {
  if (key == "lr" || key == "learning_rate")
    refuse(fmt::format("--optim-args {}: the rate is not an option of an optimizer", key), "give --learning-rate");
  if (key == "weight_decay")
    refuse("--optim-args weight_decay: every optimizer takes it from an option of its own", "give --weight-decay");
  std::string remedy = fmt::format("{} has {}", optimizer.name(), options_text(optimizer.options()));
  if (optimizer.options().empty()) remedy = "leave --optim-args out";
  refuse(fmt::format("--optim-args {}: {} has no such argument", key, optimizer.name()), remedy);
}

struct Argument {
  const OptimizerOption* option = nullptr;
  double value = 0;
};

// One "key=value" of `args`.
Argument parse_argument(const Optimizer& optimizer, std::string_view args, std::string_view item) {
  const size_t equals = item.find('=');
  if (equals == std::string_view::npos || equals == 0)
    refuse(fmt::format("--optim-args {}: '{}' is not key=value", args, item), "write k=v,k=v without spaces");
  const std::string_view key = item.substr(0, equals), text = item.substr(equals + 1);
  const OptimizerOption* option = find_option(optimizer, key);
  if (!option) refuse_stranger(optimizer, key);
  const std::optional<double> value = parse_value(*option, text);
  if (!value)
    refuse(fmt::format("--optim-args {}: '{}' is not a {}", item, text, option->flag ? "flag" : "legal value"),
           fmt::format("{} takes {}", key, range_text(*option)));
  return {option, *value};
}

}  // namespace

std::string options_text(std::span<const OptimizerOption> options) {
  std::vector<std::string> texts;
  for (const OptimizerOption& option : options)
    texts.push_back(fmt::format("{}={} ({}, {})", option.name, value_text(option, option.usual), option.meaning,
                                range_text(option)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

OptimizerSettings::OptimizerSettings() : OptimizerSettings("adamw", "") {}

OptimizerSettings::OptimizerSettings(std::string_view name, std::string_view args,
                                     const std::map<std::string, double, std::less<>>& familiar)
    : optimizer_(find_optimizer(name).name()), paged_(name.starts_with("paged_")) {
  const Optimizer& optimizer = find_optimizer(name);
  for (const OptimizerOption& option : optimizer.options()) {
    const auto given = familiar.find(option.familiar);
    values_[std::string(option.name)] = given == familiar.end() ? option.usual : given->second;
  }
  std::set<std::string_view> seen;
  for (size_t at = 0; !args.empty() && at <= args.size();) {
    const std::string_view item = args.substr(at, args.find(',', at) - at);
    at += item.size() + 1;
    const Argument given = parse_argument(optimizer, args, item);
    if (!seen.insert(given.option->name).second)
      refuse(fmt::format("--optim-args names '{}' twice", given.option->name), "give each argument once");
    if (familiar.contains(given.option->familiar))
      refuse(fmt::format("--optim-args {} and {} set the same", item, given.option->familiar), "give one of the two");
    values_[std::string(given.option->name)] = given.value;
  }
  optimizer.check(*this);
}

double OptimizerSettings::value(std::string_view option) const {
  const auto at = values_.find(option);
  HR_CHECK(at != values_.end(), "optimizer {} has no option '{}'", optimizer_, option);
  return at->second;
}

std::string OptimizerSettings::text() const {
  std::vector<std::string> texts;
  for (const OptimizerOption& option : find_optimizer(optimizer_).options())
    texts.push_back(fmt::format("{}={}", option.name, value_text(option, value(option.name))));
  return fmt::format("{}", fmt::join(texts, ","));
}

}  // namespace headroom
