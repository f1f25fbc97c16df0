// Runs every tests/passes/*.plan: a graph, a command, the graph that should come out (README.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/error.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "ops/cuda/capabilities.h"
#include "ops/registry.h"
#include "passes/attention_kernels.h"
#include "passes/chunked_loss.h"
#include "passes/fp8_products.h"
#include "passes/linear_groups.h"
#include "passes/lora_slots.h"
#include "passes/matmul_precision.h"
#include "passes/micro_batch.h"
#include "passes/narrow_logits.h"
#include "passes/narrow_products.h"
#include "passes/narrow_weights.h"
#include "passes/norm_casts.h"
#include "passes/norm_sums.h"
#include "passes/offload_activations.h"
#include "passes/offload_gradients.h"
#include "passes/offload_optimizer.h"
#include "passes/offload_parameters.h"
#include "passes/qat.h"
#include "passes/quantize_activations.h"
#include "passes/quantize_weights.h"
#include "passes/recompute.h"
#include "passes/sequence_chunks.h"
#include "planner/candidates.h"
#include "planner/pipeline.h"
#include "planner/techniques/lora.h"
#include "planner/techniques/micro_batch.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(HEADROOM_SOURCE_DIR) / "tests/passes";
constexpr std::string_view kCommand = "# run ", kExpected = "# expect\n";

struct TextCase {
  std::string head;     // up to and including the line "# expect"
  std::string command;  // "recompute block-input"
  std::string input;
  std::string expected;
};

TextCase read_case(const fs::path& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t command = text.find(kCommand), expected = text.find(kExpected);
  HR_CHECK(command != std::string::npos && expected != std::string::npos && command < expected,
           "{} needs '# run' and '# expect'", path.string());
  const size_t line_end = text.find('\n', command), begin = command + kCommand.size();
  return {text.substr(0, expected + kExpected.size()), text.substr(begin, line_end - begin),
          text.substr(line_end + 1, expected - line_end - 1), text.substr(expected + kExpected.size())};
}

// "block-input" for every block, or a level per block: "block-input keep-all".
std::vector<Keep> keep_levels(std::istringstream& words) {
  std::vector<Keep> keep;
  for (std::string word; words >> word;) keep.push_back(parse_keep(word).value());
  return keep;
}

// "offload-optimizer DEPTH", "offload-gradients DEPTH [accumulates]", "offload-activations BLOCKS DEPTH",
// "offload-parameters LAYERS DEPTH" with LAYERS 0 for every weight; to the host, or to the disk with "disk" before the
// numbers.
void offload(const std::string& pass, std::istringstream& words, Graph& graph) {
  int64_t depth = 0, blocks = 0;
  std::string accumulates;
  words >> std::ws;
  const Tier to = words.peek() == 'd' ? Tier::disk : Tier::host;
  if (to == Tier::disk) words >> accumulates;
  if (pass == "offload-activations" || pass == "offload-parameters") words >> blocks;
  words >> depth >> accumulates;
  if (pass == "offload-optimizer") offload_optimizer(graph, to, depth);
  if (pass == "offload-gradients") offload_gradients(graph, to, depth, accumulates == "accumulates");
  if (pass == "offload-parameters") offload_parameters(graph, to, blocks > 0 ? blocks : kEveryLayer, depth);
  if (pass == "offload-activations") offload_activations(graph, to, blocks, depth);
}

void add_pattern(std::string& patterns, const std::string& pattern) {
  patterns += (patterns.empty() ? "" : ",") + pattern;
}

// The facts of a GPU of compute capability 9.0.
DeviceFacts hopper() {
  DeviceFacts facts;
  facts.device = "cuda";
  facts.capabilities = of_compute_capability(90);
  return facts;
}

// "attention-kernels OWN CUDNN [any [CUDNN_ANY_ORDER]]": for each kernel its forward and backward rate, for the last
// one only the backward rate, in 1e14 flops per second.
void attention_kernels(std::istringstream& words, Graph& graph) {
  Profile profile;
  for (const char* kernels : {"own", "cudnn"}) {
    double forward = 0, backward = 0;
    words >> forward >> backward;
    profile.attention_kernels.push_back({DType::bf16, forward * 1e14, backward * 1e14, 0, 0, false, kernels});
  }
  std::string order;
  double backward = 0;
  words >> order;
  if (words >> backward)
    profile.attention_kernels.push_back({DType::bf16, 0, backward * 1e14, 0, 0, false, "cudnn_any_order"});
  choose_attention_kernels(graph, hopper(), profile, order == "any" ? AttentionOrder::any : AttentionOrder::fixed);
}

// Multiplies in fp8, for a GPU that multiplies bf16 at 1e14 flops per second and moves 1e12 bytes per second.
void fp8_products(Graph& graph) {
  Profile profile;
  profile.facts = hopper();
  profile.products.push_back({"", DType::bf16, 4096, 4096, 4096, 1e14, {}, false});
  profile.products.push_back({"", DType::f32, 4096, 4096, 4096, 1e13, {}, false});
  profile.stream_bytes_per_second = 1e12;
  multiply_in_fp8(graph, profile);
}

// "NAME [MICRO_BATCH]": the pass of a technique's record in its first setting, for a global batch of 8 in micro-batches
// of this size, usually 1.
void run_record(const Technique& technique, std::istringstream& words, Graph& graph) {
  PlanRequest request;
  Candidate candidate;
  candidate[technique] = Setting{1};
  candidate[techniques::micro_batch] = Setting{1};
  if (int64_t size = 0; words >> size) candidate[techniques::micro_batch] = Setting{size};
  technique.pass(graph, request, candidate);
}

void run_command(const std::string& command, Graph& graph) {
  std::istringstream words(command);
  std::string pass;
  words >> pass;
  int64_t number = 0;
  if (pass == "micro-batch" && words >> number) {
    set_micro_batch(graph, number);
  } else if (pass == "chunked-loss" && words >> number) {
    set_loss_chunk(graph, number);
  } else if (pass == "sequence-chunks" && words >> number) {
    chunk_sequences(graph, number);
  } else if (pass == "matmul-precision" && words >> pass) {
    set_matmul_precision(graph, pass);
  } else if (pass == "recompute") {
    recompute(graph, keep_levels(words));
  } else if (pass == "bf16-mixed" || pass == "fp16-mixed") {
    narrow_products(graph, graph.find_program("forward"), pass == "fp16-mixed" ? DType::f16 : DType::bf16);
    std::string copies;
    words >> copies;
    if (copies == "weight-copies") keep_weight_copies(graph, graph.find_program("forward"));
    if (copies == "rounded-weights") round_in_products(graph, graph.find_program("forward"));
  } else if (pass == "quantize-weights" && words >> pass) {
    const RegionId forward = graph.find_program("forward");
    quantize_weights(graph, forward, pass, nullptr);
    if (words >> pass) narrow_products(graph, forward, DType::bf16), round_in_products(graph, forward);
  } else if (pass == "quantize-activations") {
    quantize_activations(graph, graph.find_program("forward"));
  } else if (pass == "quantize-weights-to-read" && words >> pass) {
    const RegionId forward = graph.find_program("forward");
    const CodedParts parts = coded_parts(pass).value();
    quantize_weights(graph, forward, parts.layers, nullptr);
    quantize_embedding_and_head(graph, forward, parts);
    if (words >> pass) store_weights_to_read(graph, DType::bf16);
  } else if (pass == "qat" && words >> pass) {
    const RegionId forward = graph.find_program("forward");
    fake_quantize(graph, forward, pass);
    if (words >> pass) narrow_products(graph, forward, DType::bf16), round_in_products(graph, forward);
  } else if (pass == "bf16-true" || pass == "fp16-true") {
    store_weights_to_train(graph, pass == "fp16-true" ? DType::f16 : DType::bf16);
  } else if (pass == "linear-groups") {
    group_linears(graph, graph.find_program("forward"));
  } else if (pass == "lora-slots") {
    LoraSlots slots;
    words >> slots.count >> slots.rank;
    slots.targets.assign(std::istream_iterator<std::string>(words), {});
    EXPECT_GT(add_lora_slots(graph, graph.find_program("forward"), slots), 0);
    group_linears(graph, graph.find_program("forward"));
  } else if (pass == "narrow-logits") {
    narrow_logits(graph, hopper());
  } else if (pass == "norm-casts") {
    join_norm_casts(graph, hopper());
  } else if (pass == "norm-sums") {
    join_norm_sums(graph, hopper());
  } else if (pass == "fp8-products") {
    fp8_products(graph);
  } else if (pass == "attention-kernels") {
    attention_kernels(words, graph);
  } else if (pass.starts_with("offload-")) {
    offload(pass, words, graph);
  } else if (pass == "assemble") {
    PlanRequest request;
    LoraOptions lora;
    for (std::string word; words >> word;) {
      if (word == "unclipped") request.clips = false;
      if (word.starts_with("lora-r=")) lora.rank = std::stoll(word.substr(7));
      if (word.starts_with("lora-target=")) lora.targets = {word.substr(12)};
      if (word.starts_with("qat=")) request.techniques["qat"] = {word.substr(4)};
      if (word == "quantize-training") request.techniques[word] = {"int8"};
      if (word == "int8-mixed") request.techniques["quantize-training"] = {word};
      if (word.starts_with("freeze=")) add_pattern(request.techniques["freeze"].setting, word.substr(7));
    }
    request.techniques["lora"] = lora_pin(lora);
    request.staging_bytes = 4096;
    request.forward = std::move(graph);
    graph = assemble_training(request, most_frugal(request).candidate);
  } else if (const Technique* technique = find_technique(pass); technique && technique->pass) {
    run_record(*technique, words, graph);
  } else {
    HR_CHECK(false, "no pass for '{}'", command);
  }
  remove_dead_nodes(graph);
}

// Lines of `before` and `after`, with - and + where they differ.
std::string line_diff(const std::string& before, const std::string& after) {
  std::istringstream a(before), b(after);
  std::string out, x, y;
  for (;;) {
    const bool more_a = static_cast<bool>(std::getline(a, x)), more_b = static_cast<bool>(std::getline(b, y));
    if (!more_a && !more_b) return out;
    if (more_a && more_b && x == y)
      out += "  " + x + "\n";
    else
      out += (more_a ? "- " + x + "\n" : "") + (more_b ? "+ " + y + "\n" : "");
  }
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(kFolder))
    if (entry.path().extension() == ".plan") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class PassText : public testing::TestWithParam<std::string> {};

TEST_P(PassText, GivesTheExpectedGraph) {
  const fs::path path = kFolder / (GetParam() + ".plan");
  const TextCase text = read_case(path);
  Graph graph = parse_graph(text.input, path.filename().string(), find_op);
  // The forward program that "assemble" reads has its loss accumulator as a param, which verify_or_throw() refuses.
  if (!text.command.starts_with("assemble")) verify_or_throw(graph, "the input");
  run_command(text.command, graph);
  verify_or_throw(graph, text.command);
  const std::string printed = print(graph);
  if (const char* update = std::getenv("HEADROOM_UPDATE"); update && *update == '1') {
    std::ofstream(path) << text.head << printed;
    return;
  }
  EXPECT_EQ(printed, text.expected) << "expected (-) and printed (+); HEADROOM_UPDATE=1 rewrites the file\n"
                                    << line_diff(text.expected, printed);
  EXPECT_EQ(print(parse_graph(printed, "printed", find_op)), printed);
}

std::string parameter_name(const testing::TestParamInfo<std::string>& param) { return param.param; }

INSTANTIATE_TEST_SUITE_P(Files, PassText, testing::ValuesIn(case_names()), parameter_name);

}  // namespace
}  // namespace headroom
