// The settings of an optimizer: --optim and --optim-args.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace headroom {

// A numeric option of an optimizer: least <= value < below. A flag is 0 or 1, which may be written false or true.
struct OptimizerOption {
  std::string_view name;
  std::string_view meaning;
  double usual = 0;
  double least = 0;
  double below = 1;
  bool flag = false;
  // The command-line option that sets the same, or "".
  std::string_view familiar = {};
};

// An optimizer and the value of each of its options.
class OptimizerSettings {
 public:
  // AdamW with its usual values.
  OptimizerSettings();

  // `args` is "k=v,k=v" or empty. `familiar` are the values of command-line options, by the option's name: they replace
  // the usual values, and are ignored if the optimizer has no such option. Throws Error(usage) naming optimizer, key,
  // value and what is allowed.
  OptimizerSettings(std::string_view optimizer, std::string_view args,
                    const std::map<std::string, double, std::less<>>& familiar = {});

  // The optimizer's own name, even if an alias was given.
  const std::string& optimizer() const { return optimizer_; }
  // Whether the given name was one of bitsandbytes' "paged_...": states are offloaded if a lower tier has a budget.
  bool paged() const { return paged_; }
  // The value of an option; throws InternalError if the optimizer does not have it.
  double value(std::string_view option) const;
  bool flag(std::string_view option) const { return value(option) != 0; }
  // "k=v,k=v": every option, in the order of the optimizer's list. As `args` it gives the same settings.
  std::string text() const;

 private:
  std::string optimizer_;
  bool paged_ = false;
  std::map<std::string, double, std::less<>> values_;
};

// "momentum=0 (decay of ..., 0 <= v < 1), nesterov=false (...)": each option with its usual value.
std::string options_text(std::span<const OptimizerOption> options);

}  // namespace headroom
