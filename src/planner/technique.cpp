#include "planner/technique.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace headroom {

void check_setting(const PassInfo& info, const std::string& setting, const std::vector<std::string_view>& words,
                   bool number) {
  if (std::find(words.begin(), words.end(), setting) != words.end()) return;
  int64_t parsed = 0;
  const char* const end = setting.data() + setting.size();
  const auto [at, status] = std::from_chars(setting.data(), end, parsed);
  if (number && status == std::errc() && at == end && parsed >= 1) return;
  throw Error(ErrorKind::usage, fmt::format("'{}' is not a setting of technique {}", setting, info.name),
              fmt::format("one of {}{}", fmt::join(words, ", "), number ? ", or a number of at least 1" : ""));
}

bool is_planners_choice(const Technique& technique) {
  const TechniqueKind kind = technique.info->kind;
  return !technique.named_only && (kind == TechniqueKind::exact || kind == TechniqueKind::reassociating);
}

std::pair<std::string, std::string> asked_by(const Technique& technique) {
  const Spelling& option = technique.option;
  if (option.option.empty()) return {"--technique", fmt::format("{}={}", technique.name(), technique.usual)};
  return {std::string(option.option), std::string(option.value.empty() ? technique.usual : option.value)};
}

std::string why_pinned(const PlanRequest& request, const PassInfo& info) {
  const std::string& why = request.techniques.at(std::string(info.name)).why;
  return why.empty() ? "named by --technique" : why;
}

int64_t pinned_number(const PlanRequest& request, const PassInfo& info) {
  const std::string said = pin(request, info.name);
  int64_t number = 0;
  std::from_chars(said.data(), said.data() + said.size(), number);
  return number;
}

}  // namespace headroom
