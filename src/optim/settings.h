// What a user sets of an optimizer: --optim and --optim-args.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace headroom {

// A number that an optimizer has: least <= value < below. A flag is 0 or 1, written false or true too.
struct OptimizerOption {
  std::string_view name;
  std::string_view meaning;
  double usual = 0;
  double least = 0;
  double below = 1;
  bool flag = false;
  // The option of the command line that says the same, or "".
  std::string_view familiar = {};
};

// An optimizer and the value of each of its options.
class OptimizerSettings {
 public:
  // Those of AdamW with its usual values.
  OptimizerSettings();

  // `args` is "k=v,k=v" or empty. `familiar` are values given by options of their own, by that option's name: they
  // take the place of the usual ones, and are passed over where the optimizer has none. Throws Error(usage) naming
  // optimizer, key, value and what there is.
  OptimizerSettings(std::string_view optimizer, std::string_view args,
                    const std::map<std::string, double, std::less<>>& familiar = {});

  // Its own name, where an alias was given too.
  const std::string& optimizer() const { return optimizer_; }
  // Asked for by a name of bitsandbytes' that wants states off the device where there is room: "paged_...".
  bool paged() const { return paged_; }
  // Of an option that the optimizer has; throws InternalError for another.
  double value(std::string_view option) const;
  bool flag(std::string_view option) const { return value(option) != 0; }
  // "k=v,k=v": every option, in the order of the optimizer's list. Reads back as it is.
  std::string text() const;

 private:
  std::string optimizer_;
  bool paged_ = false;
  std::map<std::string, double, std::less<>> values_;
};

// "momentum=0 (decay of ..., 0 <= v < 1), nesterov=false (...)": each option with its usual value.
std::string options_text(std::span<const OptimizerOption> options);

}  // namespace headroom
