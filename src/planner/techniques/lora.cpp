#include "planner/techniques/lora.h"

#include <fmt/format.h>

#include <charconv>

#include "base/error.h"
#include "planner/techniques/length_buckets.h"
#include "planner/techniques/list_setting.h"

namespace headroom {
namespace techniques {
namespace {

// Of DoRA, per layer and length: about 60 instructions for the lengths of rows.
constexpr int64_t kMagnitudesLayerBytes = 96 * 1024;

std::vector<Setting> choices(const PlanRequest& request, const Candidate&) {
  return {Setting{requested_lora(request).rank}};
}

int64_t process_bytes(const PlanRequest& request, const Candidate&) {
  if (!requested_lora(request).decomposed) return 0;
  return lengths_of(request) * block_count(request.forward) * kMagnitudesLayerBytes;
}

void add_adapters(Assembly& a, const PlanRequest& request, const Candidate&) {
  const LoraOptions options = requested_lora(request);
  add_lora(a.graph, a.forward, options);
  if (a.trains && options.decomposed) start_magnitudes(a.graph, a.forward);
  for (const ValueId id : lora_frozen(a.graph, options)) a.frozen.insert(id);
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  if (!chosen[lora].taken()) return {"off", "trains other, fewer weights: used only when named (--lora-r)"};
  return {fmt::format("rank {}{}", chosen[lora].count, requested_lora(request).decomposed ? ", DoRA" : ""),
          "named by --lora-r", chosen.without(lora)};
}

}  // namespace

constinit const Technique lora{
    .info = &kLora,
    .option = {"--lora-r"},
    .usual = "16",
    .ladder = {5},
    .check = [](const PlanRequest& request, const std::string&) { requested_lora(request); },
    .choices = choices,
    .weights = WeightForm::adapted,
    .inference_pass =
        [](Graph& graph, std::span<const RegionId> programs, const PlanRequest& request) {
          if (const LoraOptions options = requested_lora(request); options.rank > 0)
            for (const RegionId program : programs) add_lora(graph, program, options, RowLengthsIn::load);
        },
    .model_pass = add_adapters,
    .process_bytes = process_bytes,
    .told = told,
};

}  // namespace techniques

namespace {

[[noreturn]] void refuse(std::string_view setting) {
  throw Error(ErrorKind::usage, fmt::format("'{}' is not a setting of technique lora", setting),
              "off; --lora-r asks for adapters");
}

template <typename Number>
void read_number(std::string_view text, Number& to, std::string_view setting) {
  const auto [at, status] = std::from_chars(text.data(), text.data() + text.size(), to);
  if (status != std::errc() || at != text.data() + text.size()) refuse(setting);
}

}  // namespace

Pin lora_pin(const LoraOptions& options) {
  if (options.rank == 0) return {"off"};
  return {fmt::format("rank={} alpha={} dropout={} rslora={} dora={} targets={} save={}", options.rank, options.alpha,
                      options.dropout, options.rank_stabilised ? 1 : 0, options.decomposed ? 1 : 0,
                      write_list(options.targets), write_list(options.modules_to_save)),
          "named by --lora-r"};
}

void pin_lora(PlanRequest& request, const LoraOptions& options) {
  request.techniques[std::string(kLora.name)] = lora_pin(options);
}

LoraOptions requested_lora(const PlanRequest& request) {
  LoraOptions options;
  const std::string setting = pin(request, kLora.name);
  if (setting.empty() || setting == "off") return options;
  int stabilised = 0, decomposed = 0;
  for (size_t begin = 0; begin < setting.size();) {
    const size_t end = std::min(setting.find(' ', begin), setting.size());
    const std::string_view word = std::string_view(setting).substr(begin, end - begin);
    const size_t equals = word.find('=');
    if (equals == word.npos) refuse(setting);
    const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
    if (name == "rank")
      read_number(value, options.rank, setting);
    else if (name == "alpha")
      read_number(value, options.alpha, setting);
    else if (name == "dropout")
      read_number(value, options.dropout, setting);
    else if (name == "rslora")
      read_number(value, stabilised, setting);
    else if (name == "dora")
      read_number(value, decomposed, setting);
    else if (name == "targets")
      options.targets = read_list(value);
    else if (name == "save")
      options.modules_to_save = read_list(value);
    else
      refuse(setting);
    begin = end + 1;
  }
  options.rank_stabilised = stabilised != 0;
  options.decomposed = decomposed != 0;
  return options;
}

}  // namespace headroom
