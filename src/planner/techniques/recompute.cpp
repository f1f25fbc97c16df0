#include "planner/techniques/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"
#include "planner/layer_kinds.h"
#include "planner/pipeline.h"
#include "planner/techniques/micro_batch.h"
#include "planner/techniques/offload.h"
#include "planner/techniques/permission.h"

namespace headroom {
namespace techniques {
namespace {

std::vector<Setting> choices(const PlanRequest& request, const Candidate& decided) {
  const int64_t blocks = block_count(request.forward);
  const std::string said = pin(request, kRecompute.name);
  if (!said.empty())
    if (const std::optional<Setting> asked = parse_keeps(said, layer_kinds(request.forward))) return {*asked};
  if (has_fixed_keeps(request)) return {keep_setting({{blocks, Keep::block_input}})};
  std::vector<Setting> out;
  for (const Keep keep : planned_levels()) {
    const Setting setting = keep_setting(blocks, blocks, keep, keep);
    if (std::find(out.begin(), out.end(), setting) == out.end()) out.push_back(setting);
  }
  if (!offloads(decided) || blocks == 0) return out;
  std::vector<Setting> few;  // to combine with offloading
  for (const Keep keep : {Keep::all, Keep::no_cheap, Keep::block_input})
    few.push_back(keep_setting(blocks, blocks, keep, keep));
  return few;
}

void check(const PlanRequest& request, const std::string& setting) {
  if (parse_keeps(setting, layer_kinds(request.forward))) return;
  const int64_t blocks = block_count(request.forward);
  throw Error(
      ErrorKind::usage, fmt::format("'{}' is not a setting of technique recompute", setting),
      fmt::format("on, off, keep-all, drop-cheap, drop-attention, keep-attention, block-input, drop- and classes "
                  "of tensors joined by + (cheap, norms, elementwise, attention, projections, output, mlp), or "
                  "up to {} of these for parts of the {} layers: '{}'",
                  kMostKeepRuns, blocks,
                  describe_keep(keep_setting(blocks, blocks / 2, Keep::block_input, Keep::no_cheap))));
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  const Setting none = keep_setting(chosen[recompute].of, 0, Keep::all, Keep::all);
  if (chosen[recompute] == none) return {describe_keep(none), "every activation fits"};
  Candidate plain = chosen;
  plain[recompute] = none;
  return {describe_keep(chosen[recompute]),
          has_fixed_keeps(request) ? kWhyFixedKeeps : "compared with keeping every activation", plain};
}

// As transformers names it.
constexpr Spelling kAliases[] = {{"--gradient-checkpointing", "true", "on"},
                                 {"--gradient-checkpointing", "false", "off"}};

}  // namespace

constinit const Technique recompute{
    .info = &kRecompute,
    .aliases = kAliases,
    .ladder = {2},
    .check = check,
    .choices = choices,
    .runs_always = true,
    .pass =
        [](Graph& graph, const PlanRequest& request, const Candidate& candidate) {
          const Setting& setting = candidate[recompute];
          headroom::recompute(graph, setting.more == 0 ? keeps(setting) : keeps(setting, layer_kinds(request.forward)));
        },
    .told = told,
    .phrase = describe_keep,
    .record = [](const PlanRequest&, const Candidate& chosen,
                 Choices& out) { out.set("recompute", describe_keep(chosen[recompute])); },
};

}  // namespace techniques

namespace {

// The runs of one kind of layers as a number: units of blocks of each run, then their levels.
constexpr int kCountBits = 10, kKeepBits = 6;
constexpr int64_t kMostUnits = (1 << kCountBits) - 1;
static_assert(kMostKeepRuns * (kCountBits + kKeepBits) <= 64);

int64_t blocks_of(const std::vector<KeepRun>& runs) {
  int64_t blocks = 0;
  for (const KeepRun& run : runs) blocks += run.blocks;
  return blocks;
}

std::vector<KeepRun> joined_runs(const std::vector<KeepRun>& runs) {
  std::vector<KeepRun> out;
  for (const KeepRun& run : runs) {
    if (run.blocks <= 0) continue;
    if (!out.empty() && out.back().keep == run.keep)
      out.back().blocks += run.blocks;
    else
      out.push_back(run);
  }
  return out;
}

int64_t packed_runs(const std::vector<KeepRun>& runs, int64_t unit) {
  HR_CHECK(runs.size() <= kMostKeepRuns, "{} runs of layers", runs.size());
  uint64_t bits = 0;
  int shift = 0;
  for (const KeepRun& run : runs) {
    bits |= static_cast<uint64_t>((run.blocks + unit - 1) / unit) << shift;
    bits |= static_cast<uint64_t>(run.keep) << (shift + kCountBits);
    shift += kCountBits + kKeepBits;
  }
  return static_cast<int64_t>(bits);
}

std::vector<KeepRun> unpacked_runs(int64_t packed, int64_t unit) {
  std::vector<KeepRun> out;
  for (uint64_t bits = static_cast<uint64_t>(packed); bits != 0; bits >>= kCountBits + kKeepBits)
    out.push_back({static_cast<int64_t>(bits & static_cast<uint64_t>(kMostUnits)) * unit,
                   static_cast<Keep>(bits >> kCountBits & ((1 << kKeepBits) - 1))});
  return out;
}

// For each kind of layers. The last run of the first kind has the remaining layers.
std::array<std::vector<KeepRun>, 2> runs_of(const Setting& setting) {
  const int64_t unit = keep_unit(setting.of);
  std::array<std::vector<KeepRun>, 2> out{unpacked_runs(setting.count, unit), unpacked_runs(setting.more, unit)};
  if (!out[0].empty()) out[0].back().blocks += setting.of - blocks_of(out[0]) - blocks_of(out[1]);
  return out;
}

std::vector<Keep> spread(const std::vector<KeepRun>& runs) {
  std::vector<Keep> out;
  for (const KeepRun& run : runs) out.insert(out.end(), static_cast<size_t>(run.blocks), run.keep);
  return out;
}

// "8 x block-input, 22 x keep-all" of so many blocks; all but the last run multiples of `unit`.
std::optional<std::vector<KeepRun>> parse_runs(std::string_view text, int64_t blocks, int64_t unit) {
  constexpr std::string_view times = " x ";
  std::vector<KeepRun> runs;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    KeepRun run;
    const auto [end, status] = std::from_chars(part.data(), part.data() + part.size(), run.blocks);
    const std::string_view level = part.substr(static_cast<size_t>(end - part.data()));
    const std::optional<Keep> keep = level.starts_with(times) ? parse_keep(level.substr(times.size())) : std::nullopt;
    if (status != std::errc() || !keep || run.blocks < 1 || run.blocks > blocks) return std::nullopt;
    blocks -= run.blocks;
    if (blocks > 0 && run.blocks % unit != 0) return std::nullopt;
    run.keep = *keep;
    runs.push_back(run);
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  if (blocks != 0 || runs.empty() || runs.size() > kMostKeepRuns) return std::nullopt;
  return runs;
}

}  // namespace

const Setting& recompute_of(const Candidate& candidate) { return candidate[techniques::recompute]; }

bool has_fixed_keeps(const PlanRequest& request) {
  const auto rounds = [&](const Technique* technique) {
    return technique->rounds_kept && asked_for(request, *technique->info) && !only_allowed(request, *technique->info);
  };
  return request.arithmetic_fixed && std::ranges::any_of(all_techniques(), rounds);
}

bool recomputes_layers(const Candidate& candidate) {
  const Setting& kept = recompute_of(candidate);
  return kept == keep_setting({{kept.of, Keep::block_input}});
}

bool is_frugal(const Candidate& candidate) {
  return micro_batch_of(candidate) == 1 && recomputes_layers(candidate) &&
         (!offloads(candidate) || offloads_all(candidate, recompute_of(candidate).of));
}

Setting keep_setting(const std::vector<KeepRun>& runs, const std::vector<KeepRun>& others) {
  Setting out{.count = 0, .of = static_cast<int32_t>(blocks_of(runs) + blocks_of(others))};
  out.count = packed_runs(joined_runs(runs), keep_unit(out.of));
  out.more = packed_runs(joined_runs(others), keep_unit(out.of));
  return out;
}

int64_t keep_unit(int64_t blocks) { return std::max<int64_t>(1, (blocks + kMostUnits - 1) / kMostUnits); }

Setting keep_setting(int64_t blocks, int64_t treated, Keep first, Keep rest) {
  return keep_setting({{treated, first}, {blocks - treated, rest}});
}

std::vector<Keep> keeps(const Setting& setting, const std::vector<uint8_t>& kinds) {
  const std::array<std::vector<KeepRun>, 2> runs = runs_of(setting);
  if (setting.more == 0) return spread(runs[0]);
  const std::array<std::vector<Keep>, 2> of_kind{spread(runs[0]), spread(runs[1])};
  std::array<size_t, 2> next{};
  std::vector<Keep> out;
  for (const uint8_t kind : kinds) out.push_back(of_kind[kind].at(next[kind]++));
  return out;
}

std::string describe_keep(const Setting& setting) {
  if (setting.of == 0) return keep_name(Keep::all);
  std::string text;
  for (const std::vector<KeepRun>& runs : runs_of(setting))
    for (size_t i = 0; i < runs.size(); ++i)
      text += fmt::format("{}{} x {}",
                          text.empty() ? ""
                          : i == 0     ? "; "
                                       : ", ",
                          runs[i].blocks, keep_name(runs[i].keep));
  return text;
}

std::optional<Setting> parse_keeps(std::string_view text, const std::vector<uint8_t>& kinds) {
  const int64_t blocks = static_cast<int64_t>(kinds.size());
  if (text == "on") return keep_setting({{blocks, Keep::block_input}});
  if (text == "off") return keep_setting({{blocks, Keep::all}});
  if (const std::optional<Keep> level = parse_keep(text)) return keep_setting({{blocks, *level}});
  const size_t semicolon = text.find(';');
  const bool two = semicolon != text.npos;
  const int64_t others = two ? std::count(kinds.begin(), kinds.end(), uint8_t{1}) : 0;
  const std::optional<std::vector<KeepRun>> first =
      parse_runs(text.substr(0, semicolon), blocks - others, keep_unit(blocks));
  if (!first) return std::nullopt;
  if (!two) return keep_setting(*first);
  std::string_view rest = text.substr(semicolon + 1);
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  const std::optional<std::vector<KeepRun>> second = parse_runs(rest, others, keep_unit(blocks));
  if (!second) return std::nullopt;
  return keep_setting(*first, *second);
}

std::vector<Keep> planned_levels() {
  constexpr Keep products = Keep::projections | Keep::mlp;
  return {Keep::all,
          Keep::elementwise,
          Keep::no_cheap,
          Keep::no_attention,
          Keep::no_cheap | Keep::mlp,
          Keep::no_cheap | products,
          Keep::attention_only,
          Keep::block_input};
}

}  // namespace headroom
