#include "train/setup.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "data/batch_reader.h"
#include "device/device.h"
#include "models/decoder.h"
#include "planner/candidates.h"
#include "train/budget.h"
#include "train/objective.h"

namespace headroom {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Binary, libraries' touched pages, stacks of the team, allocator: measured on tiny models (docs/process_memory.md).
constexpr int64_t kCodeBytes = 20 * kMiB;
constexpr int64_t kThreadBytes = kMiB / 2;
// Instruction tables of evaluation or generation, per layer; 1.2 to 1.6 KiB an instruction.
constexpr int64_t kInferenceLayerBytes = 40 * 1024;

// What a further part of a training run holds: tables per layer, and kernels prepared for its shapes. oneDNN generates
// code for each shape of an fp32 product; adapters bring instructions and products of their own.
struct ProgramBytes {
  int64_t layer, adapter_layer;
  int64_t kernels, product_kernels, adapter_kernels;
};
constexpr ProgramBytes kTraining{120 * 1024, 160 * 1024, 0, 0, 0};  // its kernels are part of kCodeBytes
constexpr ProgramBytes kFurtherLength{100 * 1024, 60 * 1024, kMiB / 2, kMiB, kMiB};

bool looks_like_hub_id(const std::string& text) {
  const size_t slash = text.find('/');
  return slash != std::string::npos && slash > 0 && text.find('/', slash + 1) == std::string::npos && text[0] != '.' &&
         text.find(".json") == std::string::npos;
}

}  // namespace

ModelFiles open_model(const std::filesystem::path& model) {
  std::error_code status;
  if (!std::filesystem::exists(model, status)) {
    const bool hub = looks_like_hub_id(model.string());
    throw Error(ErrorKind::usage, fmt::format("there is no model at '{}'", model.string()),
                hub ? "this looks like a Hub id: download the repository first and give its directory"
                    : "give a model directory (config.json, *.safetensors) or a config.json");
  }
  ModelFiles files;
  if (std::filesystem::is_directory(model, status)) files.directory = model;
  if (!std::filesystem::exists(model / "config.json", status) &&
      std::filesystem::exists(model / "adapter_config.json", status))
    throw Error(ErrorKind::usage, fmt::format("{} holds an adapter, no model", model.string()),
                "give its base model here: `headroom merge` makes a model of both, `generate` and `evaluate` take "
                "--adapter");
  files.config = HfConfig::read(model);
  files.spec = read_model_spec(files.config);
  return files;
}

void refuse_quantized(const ModelFiles& model, std::string_view purpose) {
  if (model.spec.quantization.empty()) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} is quantised with {}: this version cannot {} it", model.config.source.string(),
                          model.spec.quantization, purpose),
              "use the checkpoint in F32, F16 or BF16");
}

ProcessBytes process_parts(const ModelFiles& model, const DeviceFacts& facts, bool tokenizer_stays) {
  ProcessBytes process;
  process.code = kCodeBytes + facts.threads * kThreadBytes;
  std::error_code status;
  const auto size = std::filesystem::file_size(model.directory / "tokenizer.json", status);
  if (tokenizer_stays && !model.directory.empty() && !status) process.tokenizer = 3 * static_cast<int64_t>(size);
  process.planner = align_up(model.spec.layers * kInferenceLayerBytes, 4096);
  return process;
}

namespace {

void book_programs(const ProgramBytes& bytes, int64_t count, int64_t layers, const PlanRequest& request,
                   ProcessBytes& process) {
  const bool adapters = request.lora.rank > 0;
  const bool fp32_products = request.precision == "32-true" && request.matmul_precision == "highest";
  process.planner += align_up(count * layers * (bytes.layer + (adapters ? bytes.adapter_layer : 0)), 4096);
  process.kernels += count * bytes.kernels;
  if (fp32_products) process.kernels += count * (bytes.product_kernels + (adapters ? bytes.adapter_kernels : 0));
}

// Of a GPU's two page-locked batches for each program that reads the data, ids, labels, types and segments.
int64_t pinned_batch_bytes(const PlanRequest& request) {
  const int64_t programs =
      2 * (1 + (request.length_buckets ? static_cast<int64_t>(bucket_choices(request).size()) : 0));
  const int64_t rows = request.micro_batch > 0 ? request.micro_batch : request.global_batch;
  return 2 * programs * rows * request.seq_length * 4 * 4;
}

// What the process holds for all programs of a training run; those of further lengths are the step and evaluation.
ProcessBytes training_process(const TrainOptions& options, const ModelFiles& model, const PlanRequest& request) {
  ProcessBytes process = process_parts(model, request.facts, false);
  process.planner = 0;
  book_programs(kTraining, 1, model.spec.layers, request, process);
  process.data = BatchReader::memory_bytes(options.global_batch_size);
  if (request.facts.device != "cpu") process.data += pinned_batch_bytes(request);
  if (request.length_buckets) {
    process.data += SampleGroups::memory_bytes(options.global_batch_size);
    const auto buckets = static_cast<int64_t>(bucket_choices(request).size());
    book_programs(kFurtherLength, buckets, model.spec.layers, request, process);
  }
  process.copies = disk_process_bytes(request.facts);
  return process;
}

}  // namespace

DeviceFacts device_facts(const std::string& device, int threads, Profile& profile,
                         const std::string& requested_profile) {
  const DeviceFacts cpu = cpu_facts(threads > 0 ? threads : available_threads());
  profile = choose_profile(requested_profile, cpu.isa >= 512, device);
  if (device == "cpu") {
    if (profile.facts.device != "cpu")
      throw Error(ErrorKind::usage,
                  fmt::format("profile {} describes a {} device, not the cpu", profile.name, profile.facts.device),
                  "add --device null to plan for it");
    return cpu;
  }
  if (const std::optional<int> gpu = cuda_index(device)) {
    if (profile.facts.device == "cuda") return profile.facts;
    if (requested_profile.empty()) {  // nobody measured it: a shipped profile's rates, the device's own facts
      profile = load_profile("H100-80GB");
      return cuda_facts(*gpu);
    }
    throw Error(
        ErrorKind::usage,
        fmt::format("--device {}: profile {} describes a {} device", device, profile.name, profile.facts.device),
        "measure the GPU with `headroom profile --device cuda:0`, or give a shipped profile of a GPU: H100-80GB");
  }
  if (device == "null") {
    DeviceFacts facts = profile.facts;
    if (facts.device == "cpu") facts = cpu;
    return facts;
  }
  throw Error(ErrorKind::usage, fmt::format("--device {} is not known", device),
              "use cpu, cuda:0, or null to plan and check without arithmetic");
}

int64_t sequence_length(const TrainOptions& options, const ModelSpec& spec) {
  const int64_t length =
      options.max_seq_length > 0 ? options.max_seq_length : std::min<int64_t>(spec.max_positions, 512);
  if (length > spec.max_positions)
    throw Error(ErrorKind::usage,
                fmt::format("--max-seq-length {} is above the model's {} positions", length, spec.max_positions),
                "give a shorter length");
  return length;
}

namespace {

bool allows(const TrainOptions& options, std::string_view technique) {
  const auto pin = options.techniques.find(std::string(technique));
  if (pin != options.techniques.end() && pin->second == "off") return false;
  return std::any_of(options.allow.begin(), options.allow.end(),
                     [&](const std::string& allowed) { return allowed == technique || allowed == "data-order"; });
}

// Packing or length buckets where one is named; else where allowed, packing first, which saves more.
void choose_data_order(const TrainOptions& options, const ModelSpec& spec, PlanRequest& request) {
  const bool can_pack = spec.causal && spec.objective == Objective::language;
  if (options.packing && !can_pack)
    throw Error(
        ErrorKind::usage,
        fmt::format("--packing: {} is no causal language model, its rows cannot share a sequence", spec.architecture),
        "use --group-by-length true");
  if (options.packing && options.group_by_length)
    throw Error(ErrorKind::usage, "--packing and --group-by-length: packed sequences are all of about one length",
                "give --packing alone");
  request.packing = options.packing || (!options.group_by_length && can_pack && allows(options, "packing"));
  request.length_buckets = options.group_by_length || (!request.packing && allows(options, "length-buckets"));
  if (options.packing || options.group_by_length)
    request.data_order_why = options.packing ? "named by --packing" : "named by --group-by-length";
  else if (request.packing || request.length_buckets)
    request.data_order_why = fmt::format("allowed by --allow {}", fmt::join(options.allow, ","));
}

Graph forward_graph(const TrainOptions& options, ModelSpec spec, int64_t seq_length) {
  if (options.dropout == "off") spec.dropout = {};
  return build_training_forward(spec, options.global_batch_size, seq_length);
}

}  // namespace

PlanRequest training_request(const TrainOptions& options, const ModelFiles& model) {
  check_options(options);
  refuse_quantized(model, "train");
  PlanRequest request;
  request.facts = device_facts(options.device, options.threads, request.profile, options.profile);
  request.model = model.spec.family;
  request.parameters = parameter_count(model.spec);
  request.seq_length = sequence_length(options, model.spec);
  request.forward = forward_graph(options, model.spec, request.seq_length);
  request.global_batch = options.global_batch_size;
  request.precision = options.precision;
  request.matmul_precision = options.matmul_precision;
  request.lora = options.lora;
  train_head_with_adapters(model.spec, {}, request.lora);
  request.freeze = options.freeze;
  choose_data_order(options, model.spec, request);
  request.optimizer = {options.optim, options.adam_beta1, options.adam_beta2, options.adam_epsilon};
  request.clips = options.max_grad_norm > 0;
  request.arithmetic_fixed = options.arithmetic == "fixed";
  request.micro_batch = options.micro_batch_size;
  request.techniques = options.techniques;
  request.budget_bytes = options.memory;
  book_process(request, training_process(options, model, request));
  request.host_budget_bytes = options.host_memory;
  request.disk_budget_bytes = options.disk_memory;
  return request;
}

void book_process(PlanRequest& request, const ProcessBytes& process) {
  request.process = process;
  if (request.facts.device == "cpu") return;
  request.host_process = process;
  request.host_process.gpu = kCudaWindowBytes + request.profile.host_context_bytes;
  request.process = {request.profile.context_bytes, 0, 0, 0, 0, 0};
}

}  // namespace headroom
