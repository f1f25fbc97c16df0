#include "train/setup.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "data/batch_reader.h"
#include "data/chat_renderer.h"
#include "data/chat_template.h"
#include "data/pack_index.h"
#include "data/token_cache_builder.h"
#include "device/device.h"
#include "formats/safetensors.h"
#include "formats/safetensors_header.h"
#include "formats/token_names.h"
#include "models/decoder.h"
#include "planner/candidates.h"
#include "planner/estimates.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/stream_encoder.h"
#include "tokenizer/tokenizer.h"
#include "train/budget.h"
#include "train/objective.h"

namespace headroom {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Binary, libraries' touched pages, stacks of the team, allocator: measured on tiny models (docs/process_memory.md).
constexpr int64_t kCodeBytes = 20 * kMiB;
constexpr int64_t kThreadBytes = kMiB / 2;
// The same before a kernel has run: nothing is prepared or generated yet.
constexpr int64_t kPrepareCodeBytes = 14 * kMiB;
constexpr int64_t kPrepareThreadBytes = kMiB / 8;
constexpr int64_t kTemplateFactor = 24;  // of a chat template's text: its parsed form
constexpr int64_t kPageTableRatio = 512;
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

// Tables of tensors up to this size are part of kCodeBytes: those of 2000 tensors.
constexpr int64_t kTableBytes = 2 * kMiB;

// Lengths of the headers that a run writes: of its weights, and of its optimizer's two states for each.
int64_t own_header_bytes(const ModelSpec& spec) {
  constexpr int64_t kEntry = 144;  // of a tensor, beside its name
  int64_t bytes = 0;
  for (const WeightInfo& weight : model_weights(spec)) {
    const int64_t parts = weight.name.find('*') == std::string::npos ? 1 : spec.experts.count;
    bytes += std::max<int64_t>(parts, 2) * (static_cast<int64_t>(weight.name.size()) + kEntry);
  }
  return bytes;
}

// Of small JSON files, which are held parsed; up to kDocumentBytes they are part of kCodeBytes. An empty object of
// three bytes takes 16 in a list, three times that while the list grows, and 64 of its own.
constexpr int64_t kDocumentFactor = 40;
constexpr int64_t kDocumentBytes = 64 * 1024;

int64_t document_bytes(const std::filesystem::path& file) {
  std::error_code status;
  const auto size = std::filesystem::file_size(file, status);
  return status ? 0 : kDocumentFactor * std::max<int64_t>(0, static_cast<int64_t>(size) - kDocumentBytes);
}

// Of the tables of tensors that files hold, beyond what is part of kCodeBytes.
int64_t beyond_code(int64_t tables) { return align_up(std::max<int64_t>(0, tables - kTableBytes), 4096); }

// What of the model's files is held while the arena exists: config.json, and the tables of the tensors of one file at a
// time, of the model or of the run's checkpoints.
int64_t file_tables(const ModelFiles& model) {
  const int64_t files = model.directory.empty() ? 0 : SafetensorsSet::table_bytes(model.directory);
  return document_bytes(model.config.source) +
         beyond_code(std::max(files, kHeaderFactor * own_header_bytes(model.spec)));
}

// What planning holds per layer beside the tables of its plan: the graphs of a candidate before and after its passes
// and their lifetimes; 60 KiB measured, with adapters 100. The first kPlanningBytes lie in what kCodeBytes has for
// kernels and stacks, which are not there yet.
constexpr int64_t kPlanningLayerBytes = 96 * 1024;
constexpr int64_t kPlanningAdapterBytes = 32 * 1024;
constexpr int64_t kPlanningBytes = 8 * kMiB;

bool looks_like_hub_id(const std::string& text) {
  const size_t slash = text.find('/');
  return slash != std::string::npos && slash > 0 && text.find('/', slash + 1) == std::string::npos && text[0] != '.' &&
         text.find(".json") == std::string::npos;
}

}  // namespace

int64_t adapter_bytes(const std::filesystem::path& directory) {
  return document_bytes(directory / "adapter_config.json") +
         beyond_code(SafetensorsFile::table_bytes(directory / "adapter_model.safetensors"));
}

int64_t most_own_header_bytes(const ModelSpec& spec) { return 2 * own_header_bytes(spec); }

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
  if (status && status != std::errc::no_such_file_or_directory)
    throw Error(ErrorKind::run, fmt::format("{}: {}", model.string(), status.message()),
                "check that the model's folder can be read");
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
  process.data = file_tables(model);
  return process;
}

namespace {

int64_t file_bytes(const ModelFiles& model, const char* name) {
  std::error_code status;
  if (model.directory.empty()) return 0;
  const auto size = std::filesystem::file_size(model.directory / name, status);
  if (!status) return static_cast<int64_t>(size);
  if (status == std::errc::no_such_file_or_directory) return 0;
  throw Error(ErrorKind::run, fmt::format("{}: {}", (model.directory / name).string(), status.message()),
              "check that the model's folder can be read");
}

// Of loading the tokenizer and the names of its special tokens.
int64_t tokenizer_bytes(const ModelFiles& model) {
  const int64_t tokenizer = file_bytes(model, "tokenizer.json");
  if (tokenizer == 0) return 0;
  return Tokenizer::memory_bound(tokenizer) + token_names_bytes(file_bytes(model, "tokenizer_config.json")) +
         token_names_bytes(file_bytes(model, "special_tokens_map.json"));
}

// Of the file that may hold a chat template; 0 where none does.
int64_t template_file_bytes(const ModelFiles& model) {
  return std::max(file_bytes(model, "tokenizer_config.json"), file_bytes(model, "chat_template.jinja"));
}

int64_t template_bytes(const ModelFiles& model) {
  return kTemplateFactor * std::min(kChatTemplateBytes, template_file_bytes(model));
}

// The process while it holds so many bytes besides, before a kernel has run.
int64_t before_arena(const PlanRequest& request, int64_t bytes) {
  const ProcessBytes& there = request.facts.is_cpu() ? request.process : request.host_process;
  const int64_t process = kPrepareCodeBytes + request.facts.threads * kPrepareThreadBytes + there.planner + there.gpu +
                          there.caller + bytes;
  return process + align_up(process / kPageTableRatio, 4096);
}

}  // namespace

void book_prepare(PlanRequest& request, const ModelFiles& model) {
  const int64_t tokenizer = tokenizer_bytes(model);
  const bool chats = tokenizer > 0 && template_file_bytes(model) > 0;
  const int64_t cache = data_memory_bytes(request.seq_length) + tokenizer +
                        (chats ? template_bytes(model) + ChatRenderer::kLeastBytes : 0);
  const int64_t packing = request.packing ? PackIndex::memory_bytes(request.seq_length) : 0;
  request.prepare.least = before_arena(request, std::max(cache, packing));
  request.prepare.most = request.prepare.least + (chats ? ChatRenderer::kMostBytes - ChatRenderer::kLeastBytes : 0);
}

void book_prompt(PlanRequest& request, const ModelFiles& model, int64_t text_bytes, int64_t chat_bytes) {
  // The text, and what held it while it was read.
  const int64_t held =
      3 * text_bytes + tokenizer_bytes(model) + (chat_bytes > 0 ? template_bytes(model) + chat_bytes : 0);
  request.prepare.least = request.prepare.most = before_arena(request, held);
}

void book_encoding(PlanRequest& request, const Tokenizer& tokenizer, int64_t text_bytes) {
  // A token has at least a byte of what the text becomes; a growing list holds twice what is in it, besides its copy.
  const int64_t ids = 3 * static_cast<int64_t>(sizeof(int32_t)) * tokenizer.pipeline().word_bytes_bound(text_bytes);
  request.prepare.least += align_up(StreamEncoder::memory_bound(tokenizer, text_bytes) + ids, 4096);
  request.prepare.most = request.prepare.least;
}

int64_t chat_bytes_of(const Plan& plan) { return ChatRenderer::kLeastBytes + plan.prepare.most - plan.prepare.least; }

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

// Planning ends before the arena exists: what it holds is booked as far as the weights alone do not take as much of the
// arena. Weights that may lie below the device are not counted on.
int64_t planning_bytes(const ModelSpec& spec, const PlanRequest& request) {
  const bool may_leave = request.host_budget_bytes > 0 || request.disk_budget_bytes > 0 || !request.facts.is_cpu();
  const int64_t weights = may_leave ? 0 : 2 * parameter_count(spec);
  const int64_t layer = kPlanningLayerBytes + (request.lora.rank > 0 ? kPlanningAdapterBytes : 0);
  return align_up(std::max<int64_t>(0, spec.layers * layer - kPlanningBytes - weights), 4096);
}

// What the process holds for all programs of a training run; those of further lengths are the step and evaluation.
ProcessBytes training_process(const TrainOptions& options, const ModelFiles& model, const PlanRequest& request) {
  ProcessBytes process = process_parts(model, request.facts, false);
  process.planner = 0;
  book_programs(kTraining, 1, model.spec.layers, request, process);
  process.data += BatchReader::memory_bytes(options.global_batch_size);
  if (!request.facts.is_cpu()) process.data += pinned_batch_bytes(request);
  if (request.length_buckets) {
    process.data += SampleGroups::memory_bytes(options.global_batch_size);
    const auto buckets = static_cast<int64_t>(bucket_choices(request).size());
    book_programs(kFurtherLength, buckets, model.spec.layers, request, process);
  }
  process.planner += planning_bytes(model.spec, request);
  process.copies = disk_process_bytes(request.facts);
  process.caller = options.caller_bytes;
  return process;
}

}  // namespace

namespace {

// A GPU's kernels are prepared before the data is: their page-locked batches are there by then.
void book_kernels_first(PlanRequest& request) {
  const int64_t batches = pinned_batch_bytes(request);
  const int64_t bytes = batches + align_up(batches / kPageTableRatio, 4096);
  request.prepare.least += bytes;
  request.prepare.most += bytes;
}

DeviceFacts machine_facts(int threads) { return cpu_facts(threads > 0 ? threads : available_threads()); }

// Of a profile of a CPU: its own facts where it is named.
DeviceFacts facts_on_cpu(const TrainOptions& options, const Profile& profile) {
  if (options.profile.empty()) return machine_facts(options.threads);
  DeviceFacts facts = profile.facts;
  if (options.threads > 0) facts.threads = options.threads;
  if (!options.runs_here || device_kind(options.device) != DeviceKind::cpu) return facts;
  const DeviceFacts machine = machine_facts(options.threads);
  facts.isa = std::min(facts.isa, machine.isa);
  facts.native_bf16 = facts.native_bf16 && machine.native_bf16;
  return facts;
}

DeviceFacts facts_on_gpu(const TrainOptions& options, int gpu, Profile& profile) {
  if (!profile.facts.is_cpu()) return profile.facts;
  if (options.profile.empty()) {  // nobody measured it: a shipped profile's rates, the device's own facts
    profile = load_profile(kUnmeasuredGpu);
    return cuda_facts(gpu);
  }
  throw Error(
      ErrorKind::usage,
      fmt::format("--device {}: profile {} describes a {} device", options.device, profile.name, profile.facts.device),
      fmt::format("measure the GPU with `headroom profile --device cuda:0`, or give a shipped profile of a GPU: {}",
                  kUnmeasuredGpu));
}

}  // namespace

DeviceFacts device_facts(const TrainOptions& options, Profile& profile) {
  const DeviceKind kind = device_kind(options.device);
  profile = choose_profile(options.profile, cpu_facts(1).isa >= 512, cuda_index(options.device));
  if (const std::optional<int> gpu = cuda_index(options.device)) return facts_on_gpu(options, *gpu, profile);
  if (profile.facts.is_cpu()) return facts_on_cpu(options, profile);
  if (kind == DeviceKind::null) return profile.facts;
  throw Error(ErrorKind::usage,
              fmt::format("profile {} describes a {} device, not the cpu", profile.name, profile.facts.device),
              "add --device null to plan for it");
}

std::string profile_remark(const TrainOptions& options, const PlanRequest& request) {
  if (options.profile.empty() || device_kind(options.device) != DeviceKind::cpu) return {};
  const Profile& profile = request.profile;
  if (request.facts.isa < profile.facts.isa)
    return fmt::format(
        "note: profile {} describes {}, this machine has {}: planned anew for that, so that bytes and seconds are not "
        "those of `plan --profile {}`; `headroom profile -o FILE` measures this machine",
        profile.name, cpu_isa_name(profile.facts.isa), cpu_isa_name(request.facts.isa), profile.name);
  const int usable = available_threads();
  if (options.threads == 0 && request.facts.threads < usable)
    return fmt::format("note: {} thread{}, as profile {} describes: --threads {} uses every CPU of this process",
                       request.facts.threads, request.facts.threads == 1 ? "" : "s", profile.name, usable);
  return {};
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
  request.facts = device_facts(options, request.profile);
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
  request.optimizer = optimizer_settings(options);
  request.clips = options.max_grad_norm > 0;
  request.arithmetic_fixed = options.arithmetic == "fixed";
  request.micro_batch = options.micro_batch_size;
  request.techniques = options.techniques;
  request.budget_bytes = options.memory;
  request.host_budget_bytes = options.host_memory;
  request.disk_budget_bytes = options.disk_memory;
  book_process(request, training_process(options, model, request));
  book_prepare(request, model);
  if (!request.facts.is_cpu()) book_kernels_first(request);
  return request;
}

void book_process(PlanRequest& request, const ProcessBytes& process) {
  request.process = process;
  if (request.facts.is_cpu()) return;
  request.host_process = process;
  request.host_process.gpu = kCudaWindowBytes + kCudaGraphBytes + request.profile.host_context_bytes;
  request.process = {};
  request.process.code = booked_context_bytes(request.profile);
  request.process.graphs = kCudaGraphBytes;
}

}  // namespace headroom
