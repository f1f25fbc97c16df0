#include "planner/candidates.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/error.h"
#include "base/nearest_name.h"
#include "passes/length_buckets.h"
#include "passes/pass.h"
#include "planner/offload_choices.h"

namespace headroom {
namespace {

// Names of cli.md that later versions build.
constexpr std::string_view kLaterTechniques[] = {"sequence-chunks",
                                                 "fuse-elementwise",
                                                 "compress-activations",
                                                 "fp16-mixed",
                                                 "fp16-true",
                                                 "quantize-weights",
                                                 "quantize-training",
                                                 "qat",
                                                 "optimizer-8bit",
                                                 "paged-optimizer",
                                                 "shard",
                                                 "ring-attention",
                                                 "paged-kv"};

bool one_micro_batch(const PlanRequest& request, int64_t micro_batch) { return micro_batch >= request.global_batch; }

[[noreturn]] void refuse_unknown(const std::string& name) {
  std::vector<std::string> names{"flash-attention"};
  for (const PassInfo* pass : all_passes()) names.emplace_back(pass->name);
  throw Error(ErrorKind::usage, fmt::format("there is no technique '{}'", name),
              fmt::format("did you mean '{}'?", nearest_name(name, names)));
}

void check_value(const std::string& name, const std::string& value, std::initializer_list<std::string_view> words,
                 bool number) {
  for (std::string_view word : words)
    if (value == word) return;
  int64_t parsed = 0;
  const auto [at, status] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  if (number && status == std::errc() && at == value.data() + value.size() && parsed >= 1) return;
  throw Error(ErrorKind::usage, fmt::format("--technique {}={} is no setting of it", name, value),
              fmt::format("one of {}{}", fmt::join(words, ", "), number ? ", or a number of at least 1" : ""));
}

std::vector<Keep> first_blocks(int64_t blocks, int64_t treated, Keep keep, Keep rest) {
  std::vector<Keep> out(static_cast<size_t>(blocks), rest);
  std::fill_n(out.begin(), treated, keep);
  return out;
}

}  // namespace

void check_techniques(const PlanRequest& request) {
  for (const auto& [name, value] : request.techniques) {
    if (name == "recompute") {
      check_value(name, value, {"on", "off", "keep-all", "drop-cheap", "drop-attention", "block-input"}, false);
    } else if (name == "chunked-loss") {
      check_value(name, value, {"on", "off"}, true);
    } else if (name == "micro-batch") {
      check_value(name, value, {"on"}, true);
    } else if (name == "bf16-mixed" || name == "bf16-true") {
      check_value(name, value, {"on", "off"}, false);
      if ((value == "on") != (request.precision == name))
        throw Error(ErrorKind::usage,
                    fmt::format("--technique {}={} contradicts --precision {}", name, value, request.precision),
                    "state one of them");
    } else if (name == "packing" || name == "length-buckets") {
      check_value(name, value, {"on", "off"}, false);
      const bool packing = name == "packing";
      if ((value == "on") != (packing ? request.packing : request.length_buckets))
        throw Error(
            ErrorKind::usage,
            fmt::format("--technique {}={} contradicts --{}", name, value, packing ? "packing" : "group-by-length"),
            "state one of them");
    } else if (name == "lora") {
      if ((value == "off") == (request.lora.rank > 0))
        throw Error(ErrorKind::usage,
                    fmt::format("--technique lora={} contradicts --lora-r {}", value, request.lora.rank),
                    "give --lora-r alone");
    } else if (name == "freeze") {
      if (value == "off" && !request.freeze.empty())
        throw Error(ErrorKind::usage, "--technique freeze=off contradicts --freeze", "state one of them");
    } else if (name == "matmul-precision") {
      check_value(name, value, {"highest", "high", "medium"}, false);
      if (value != request.matmul_precision)
        throw Error(ErrorKind::usage,
                    fmt::format("--technique matmul-precision={} contradicts --matmul-precision {}", value,
                                request.matmul_precision),
                    "state one of them");
    } else if (name == "flash-attention") {
      check_value(name, value, {"on"}, false);
    } else if (name == "fused-optimizer") {
      check_value(name, value, {"on", "off"}, false);
      if (value == "on" && request.clips)
        throw Error(
            ErrorKind::usage,
            "--technique fused-optimizer=on needs every gradient before the first update when clipping by global norm",
            "add --max-grad-norm 0");
      const std::string technique = pin(request, "micro-batch");
      int64_t pinned = request.micro_batch;
      if (pinned == 0) std::from_chars(technique.data(), technique.data() + technique.size(), pinned);
      if (value == "on" && pinned > 0 && pinned < request.global_batch)
        throw Error(ErrorKind::usage,
                    fmt::format("--technique fused-optimizer=on needs one micro-batch per step, not {} of {}",
                                request.global_batch, pinned),
                    "leave the micro-batch to the planner, or make it the global batch size");
    } else if (is_offload_technique(name)) {
      check_offload_pin(request, name, value);
    } else if (std::find(std::begin(kLaterTechniques), std::end(kLaterTechniques), name) !=
               std::end(kLaterTechniques)) {
      if (value == "off") continue;
      throw Error(ErrorKind::usage, fmt::format("technique '{}' is not built in this version", name),
                  "leave it out; `headroom plan --help` lists what is built");
    } else {
      refuse_unknown(name);
    }
  }
}

bool loss_spans_batch(const PlanRequest& request) {
  const Graph& graph = request.forward;
  const std::vector<NodeId>& nodes = graph.region(graph.find_program("forward")).nodes;
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) { return graph.node(id).op->spans_batch(); });
}

std::vector<int64_t> micro_batch_choices(const PlanRequest& request) {
  const std::string technique = pin(request, "micro-batch");
  if (request.micro_batch > 0) return {std::min(request.micro_batch, request.global_batch)};
  if (!technique.empty() && technique != "on") return {std::min<int64_t>(std::stoll(technique), request.global_batch)};
  if (pin(request, "fused-optimizer") == "on" || loss_spans_batch(request)) return {request.global_batch};
  if (request.arithmetic_fixed) return {1};
  std::set<int64_t> sizes{request.global_batch};
  for (int64_t size = 1; size < request.global_batch && size <= 64; size *= 2) sizes.insert(size);
  return {sizes.begin(), sizes.end()};
}

std::vector<int64_t> loss_chunk_choices(const PlanRequest& request, int64_t rows) {
  const std::string technique = pin(request, "chunked-loss");
  if (request.loss_chunk >= 0) return {std::min(request.loss_chunk, rows)};
  if (technique == "off") return {0};
  if (!technique.empty() && technique != "on") return {std::min<int64_t>(std::stoll(technique), rows)};
  if (request.arithmetic_fixed) return {kFixedLossChunk};
  std::vector<int64_t> chunks;
  for (int64_t chunk = 64; chunk < rows && chunk <= 4096; chunk *= 2) chunks.push_back(chunk);
  if (technique != "on" || chunks.empty()) chunks.push_back(rows);
  return chunks;
}

std::vector<std::vector<Keep>> keep_choices(const PlanRequest& request, int64_t blocks) {
  const std::string technique = pin(request, "recompute");
  if (technique == "off" || technique == "keep-all") return {first_blocks(blocks, blocks, Keep::all, Keep::all)};
  if (technique == "on" || technique == "block-input")
    return {first_blocks(blocks, blocks, Keep::block_input, Keep::all)};
  if (technique == "drop-cheap") return {first_blocks(blocks, blocks, Keep::no_cheap, Keep::all)};
  if (technique == "drop-attention") return {first_blocks(blocks, blocks, Keep::no_attention, Keep::all)};
  std::vector<std::vector<Keep>> out{first_blocks(blocks, blocks, Keep::all, Keep::all)};
  const auto add = [&](int64_t treated, Keep keep, Keep rest) {
    std::vector<Keep> choice = first_blocks(blocks, treated, keep, rest);
    if (std::find(out.begin(), out.end(), choice) == out.end()) out.push_back(std::move(choice));
  };
  add(blocks / 2, Keep::no_cheap, Keep::all);
  add(blocks, Keep::no_cheap, Keep::all);
  add(blocks, Keep::no_attention, Keep::no_cheap);
  for (int64_t eighth = 1; eighth <= 8; ++eighth) add((blocks * eighth + 7) / 8, Keep::block_input, Keep::no_cheap);
  return out;
}

std::vector<std::vector<Keep>> keeps_beside(const PlanRequest& request, const Offload& offload, int64_t blocks) {
  std::vector<std::vector<Keep>> all = keep_choices(request, blocks);
  if (!offload.any() || all.size() <= 3) return all;
  return {all.front(), all[2], all.back()};
}

std::vector<bool> weight_copy_choices(const PlanRequest& request) {
  if (request.precision != "bf16-mixed") return {false};
  return {true, false};
}

bool fuses_optimizer(const PlanRequest& request, int64_t micro_batch) {
  return !request.clips && one_micro_batch(request, micro_batch) && pin(request, "fused-optimizer") != "off";
}

int64_t block_count(const Graph& graph) {
  int32_t most = kNone;
  for (const Node& node : graph.nodes) most = std::max(most, node.block);
  return most + 1;
}

std::vector<int64_t> bucket_choices(const PlanRequest& request) {
  return request.length_buckets ? bucket_lengths(request.seq_length) : std::vector<int64_t>{};
}

Candidate most_frugal(const PlanRequest& request) {
  const int64_t micro_batch = micro_batch_choices(request).front(), blocks = block_count(request.forward);
  Offload offload = offload_choices(request, blocks).back();
  if (const std::vector<int64_t> depths = prefetch_choices(request, offload); !depths.empty())
    offload.prefetch = depths.front();
  return {micro_batch,
          loss_chunk_choices(request, micro_batch * request.seq_length).front(),
          keep_choices(request, blocks).back(),
          weight_copy_choices(request).back(),
          fuses_optimizer(request, micro_batch),
          micro_batch < request.global_batch,
          offload};
}

std::string describe_keep(const std::vector<Keep>& keep) {
  std::string text;
  for (size_t begin = 0; begin < keep.size();) {
    size_t end = begin;
    while (end < keep.size() && keep[end] == keep[begin]) ++end;
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", end - begin, keep_name(keep[begin]));
    begin = end;
  }
  return text.empty() ? "keep-all" : text;
}

}  // namespace headroom
