#include "planner/techniques/recompute.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/techniques/offload.h"

namespace headroom {
namespace techniques {
namespace {

std::vector<Setting> grid(int64_t blocks) {
  std::vector<Setting> out{keep_setting(blocks, blocks, Keep::all, Keep::all)};
  const auto add = [&](int64_t treated, Keep keep, Keep rest) {
    const Setting choice = keep_setting(blocks, treated, keep, rest);
    if (std::find(out.begin(), out.end(), choice) == out.end()) out.push_back(choice);
  };
  add(blocks / 2, Keep::no_cheap, Keep::all);
  add(blocks, Keep::no_cheap, Keep::all);
  add(blocks, Keep::no_attention, Keep::no_cheap);
  for (int64_t eighth = 1; eighth <= 8; ++eighth) add((blocks * eighth + 7) / 8, Keep::block_input, Keep::no_cheap);
  return out;
}

std::vector<Setting> choices(const PlanRequest& request, const Candidate& decided) {
  const int64_t blocks = block_count(request.forward);
  const std::string said = pin(request, kRecompute.name);
  const auto everywhere = [&](Keep keep) { return std::vector{keep_setting(blocks, blocks, keep, Keep::all)}; };
  if (said == "off") return everywhere(Keep::all);
  if (said == "on") return everywhere(Keep::block_input);
  for (const Keep keep : {Keep::all, Keep::no_cheap, Keep::no_attention, Keep::block_input})
    if (said == keep_name(keep)) return everywhere(keep);
  const std::vector<Setting> all = grid(blocks);
  if (!offloads(decided) || all.size() <= 3) return all;
  return {all.front(), all[2], all.back()};  // a few, to combine with what leaves the device
}

Told told(const PlanRequest&, const Candidate& chosen) {
  const Setting none = keep_setting(chosen[recompute].of, 0, Keep::all, Keep::all);
  if (chosen[recompute] == none) return {describe_keep(none), "every activation fits"};
  Candidate plain = chosen;
  plain[recompute] = none;
  return {describe_keep(chosen[recompute]), "against keeping every activation", plain};
}

}  // namespace

constinit const Technique recompute{
    .info = &kRecompute,
    .check =
        [](const PlanRequest&, const std::string& setting) {
          check_setting(kRecompute, setting, {"on", "off", "keep-all", "drop-cheap", "drop-attention", "block-input"});
        },
    .choices = choices,
    .runs_always = true,
    .pass = [](Graph& graph, const PlanRequest&,
               const Candidate& candidate) { headroom::recompute(graph, keeps(candidate[recompute])); },
    .told = told,
    .phrase = describe_keep,
    .record = [](const PlanRequest&, const Candidate& chosen,
                 Choices& out) { out.set("recompute", describe_keep(chosen[recompute])); },
};

}  // namespace techniques

// Of equal settings one: what treats no block is written as what treats all of them with what the rest keeps.
Setting keep_setting(int64_t blocks, int64_t treated, Keep first, Keep rest) {
  if (treated == 0 || first == rest) treated = blocks, first = rest;
  if (treated == blocks) rest = Keep::all;
  return {.count = treated,
          .of = static_cast<int32_t>(blocks),
          .form = static_cast<uint8_t>(static_cast<int>(first) | static_cast<int>(rest) << 4)};
}

std::vector<Keep> keeps(const Setting& setting) {
  std::vector<Keep> out(static_cast<size_t>(setting.of), static_cast<Keep>(setting.form >> 4));
  std::fill_n(out.begin(), setting.count, static_cast<Keep>(setting.form & 15));
  return out;
}

std::string describe_keep(const Setting& setting) {
  if (setting.of == 0) return "keep-all";
  std::string text = fmt::format("{} x {}", setting.count, keep_name(static_cast<Keep>(setting.form & 15)));
  if (setting.count < setting.of)
    text += fmt::format(", {} x {}", setting.of - setting.count, keep_name(static_cast<Keep>(setting.form >> 4)));
  return text;
}

}  // namespace headroom
