#include "engine/process_bytes.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "data/batch_reader.h"
#include "data/chat_renderer.h"
#include "data/chat_template.h"
#include "data/pack_index.h"
#include "data/token_cache_builder.h"
#include "device/device.h"
#include "formats/gguf_file.h"
#include "formats/safetensors.h"
#include "formats/safetensors_header.h"
#include "formats/token_names.h"
#include "passes/length_buckets.h"
#include "passes/packing.h"
#include "planner/estimates.h"
#include "planner/techniques/length_buckets.h"
#include "planner/techniques/matmul_precision.h"
#include "planner/techniques/micro_batch.h"
#include "planner/techniques/precision.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/stream_encoder.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_place.h"
#include "train/options.h"

namespace headroom {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Binary, libraries' touched pages, stacks of the team, allocator: measured on tiny models (docs/process_memory.md).
constexpr int64_t kCodeBytes = 20 * kMiB;
constexpr int64_t kThreadBytes = kMiB / 2;
// The same before a kernel has run: no kernel is prepared or generated yet.
constexpr int64_t kPrepareThreadBytes = kMiB / 8;
constexpr int64_t kTemplateFactor = 24;  // of a chat template's text, for its parsed form
constexpr int64_t kPageTableRatio = 512;
// Instruction tables of evaluation or generation, per layer; 1.2 to 1.6 KiB an instruction.
constexpr int64_t kInferenceLayerBytes = 40 * 1024;

// The same for one of a server's programs; for adapters in it.
constexpr int64_t kServingLayerBytes = 20 * 1024;
constexpr int64_t kServingAdapterBytes = 24 * 1024;

// What copies from lower tiers add to these tables, per layer and program: their instructions, and windows in the plan.
constexpr int64_t kReadLayerBytes = 12 * 1024;
constexpr int64_t kReadAdapterBytes = 24 * 1024;

// For each further length of a training run: tables per layer, and kernels prepared for its shapes. oneDNN generates
// code for each shape of an fp32 product; adapters and casts between precisions add instructions, adapters products.
struct ProgramBytes {
  int64_t layer, adapter_layer, cast_layer;
  int64_t kernels, product_kernels, adapter_kernels;
};
constexpr ProgramBytes kTraining{120 * 1024, 160 * 1024, 64 * 1024, 0, 0, 0};  // its kernels are part of kCodeBytes
constexpr ProgramBytes kFurtherLength{100 * 1024, 60 * 1024, 32 * 1024, kMiB / 2, kMiB, kMiB};

// Tables of tensors up to this size, enough for 2000 tensors, are part of kCodeBytes.
constexpr int64_t kTableBytes = 2 * kMiB;

// For small JSON files, which are held parsed; up to kDocumentBytes they are part of kCodeBytes. An empty object of
// three bytes takes 16 in a list, three times that while the list grows, and 64 itself.
constexpr int64_t kDocumentFactor = 40;
constexpr int64_t kDocumentBytes = 64 * 1024;

int64_t document_bytes(const std::filesystem::path& file) {
  std::error_code status;
  const auto size = std::filesystem::file_size(file, status);
  return status ? 0 : kDocumentFactor * std::max<int64_t>(0, static_cast<int64_t>(size) - kDocumentBytes);
}

// For the tables of tensors in files, beyond the part in kCodeBytes.
int64_t beyond_code(int64_t tables) { return align_up(std::max<int64_t>(0, tables - kTableBytes), 4096); }

// The part of the model's files that is held while the arena exists: config.json, and the tables of the tensors of one
// file at a time, of the model or of the run's checkpoints.
int64_t file_tables(const ModelFiles& model) {
  const int64_t files = model.directory.empty() ? 0 : SafetensorsSet::table_bytes(model.weights);
  const int64_t config = is_gguf(model.config.source) ? 0 : document_bytes(model.config.source);
  return config + beyond_code(std::max(files, kHeaderFactor * own_header_bytes(model.spec)));
}

// Planning's memory: for each node of the forward pass the graphs of the largest candidate, before and after its
// passes, and their lifetimes; more for each product with adapters; and what does not depend on the model. A sequence
// in eight parts is the largest; lower tiers add copies, and more candidates. Measured on models of 2 to 80 layers
// (docs/process_memory.md).
struct PlanningBytes {
  int64_t node, adapters, fixed;
};
constexpr PlanningBytes kPlanning{48 * 1024, 72 * 1024, 4 * kMiB};
constexpr PlanningBytes kPlanningTiers{80 * 1024, 144 * 1024, 8 * kMiB};

}  // namespace

int64_t adapter_bytes(const std::filesystem::path& directory) {
  return document_bytes(directory / "adapter_config.json") +
         beyond_code(SafetensorsFile::table_bytes(directory / "adapter_model.safetensors"));
}

ProcessBytes process_parts(const ModelFiles& model, const DeviceFacts& facts, bool tokenizer_stays) {
  ProcessBytes process;
  process.code = kCodeBytes + facts.threads * kThreadBytes;
  if (tokenizer_stays && !model.tokenizer.empty()) process.tokenizer = 3 * tokenizer_file_bytes(model.tokenizer);
  process.planner = align_up(model.spec.layers * kInferenceLayerBytes, 4096);
  process.data = file_tables(model);
  return process;
}

namespace {

// The size of a file in the model's folder; 0 if there is none. Throws Error(run) if it cannot be determined.
int64_t file_bytes(const ModelFiles& model, const char* name) {
  std::error_code status;
  if (model.directory.empty()) return 0;
  const auto size = std::filesystem::file_size(model.directory / name, status);
  if (!status) return static_cast<int64_t>(size);
  if (status == std::errc::no_such_file_or_directory) return 0;
  throw Error(ErrorKind::run, fmt::format("{}: {}", (model.directory / name).string(), status.message()),
              "check that the model's folder can be read");
}

// For loading the tokenizer and the names of its special tokens.
int64_t tokenizer_bytes(const ModelFiles& model) {
  if (is_gguf_tokenizer(model.tokenizer))
    return Tokenizer::memory_bound(tokenizer_file_bytes(model.tokenizer)) + tokenizer_header_bytes(model.tokenizer);
  const int64_t tokenizer = file_bytes(model, "tokenizer.json");
  if (tokenizer == 0) return 0;
  return Tokenizer::memory_bound(tokenizer) + token_names_bytes(file_bytes(model, "tokenizer_config.json")) +
         token_names_bytes(file_bytes(model, "special_tokens_map.json"));
}

// Size of the chat template, or of the file that may hold one; 0 if there is none.
int64_t template_file_bytes(const ModelFiles& model) {
  if (is_gguf_tokenizer(model.tokenizer)) return static_cast<int64_t>(gguf_chat_template(model.tokenizer).size());
  return std::max(file_bytes(model, "tokenizer_config.json"), file_bytes(model, "chat_template.jinja"));
}

int64_t template_bytes(const ModelFiles& model) {
  return kTemplateFactor * std::min(kChatTemplateBytes, template_file_bytes(model));
}

// For all layers: so many bytes each, and more with adapters.
int64_t layer_bytes(int64_t layers, const PlanRequest& request, int64_t each, int64_t adapters) {
  return layers * (each + (weights_are(request, WeightForm::adapted) ? adapters : 0));
}

// The bytes of the process in host memory.
template <typename Request>
auto& host_bytes(Request& request) {
  return request.facts.is_cpu() ? request.process : request.host_process;
}

// The process while it holds so many further bytes, before a kernel has run.
int64_t before_arena(const PlanRequest& request, int64_t bytes) {
  const ProcessBytes& there = host_bytes(request);
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
  const int64_t packing = asked_for(request, kPacking) ? PackIndex::memory_bytes(request.seq_length) : 0;
  request.prepare.least = before_arena(request, std::max(cache, packing));
  request.prepare.most = request.prepare.least + (chats ? ChatRenderer::kMostBytes - ChatRenderer::kLeastBytes : 0);
}

// The text, the buffers with which it was read, and the chat's rendering.
int64_t prompt_bytes(const ModelFiles& model, int64_t text_bytes, int64_t chat_bytes) {
  return 3 * text_bytes + (chat_bytes > 0 ? template_bytes(model) + chat_bytes : 0);
}

void book_prompt(PlanRequest& request, const ModelFiles& model, int64_t text_bytes, int64_t chat_bytes) {
  const int64_t held = tokenizer_bytes(model) + prompt_bytes(model, text_bytes, chat_bytes);
  request.prepare.least = request.prepare.most = before_arena(request, held);
}

namespace {

int64_t read_tables(const ModelFiles& model, const PlanRequest& request, int64_t programs) {
  return align_up(programs * layer_bytes(model.spec.layers, request, kReadLayerBytes, kReadAdapterBytes), 4096);
}

}  // namespace

int64_t reading_bytes(const ModelFiles& model, const PlanRequest& request, int64_t programs) {
  return disk_process_bytes(request.facts) + read_tables(model, request, programs);
}

void book_server(PlanRequest& request, const ModelFiles& model, int64_t programs, int64_t bytes, bool slots) {
  ProcessBytes& there = host_bytes(request);
  there.server = align_up(bytes, 4096);
  const int64_t adapters = slots || weights_are(request, WeightForm::adapted) ? kServingAdapterBytes : 0;
  there.planner = align_up(programs * model.spec.layers * (kServingLayerBytes + adapters), 4096);
  there.copies = reading_bytes(model, request, programs);
}

int64_t encoding_bytes(const Tokenizer& tokenizer, int64_t text_bytes) {
  // A token covers at least one byte of the processed text; a growing list holds twice its contents, besides its copy.
  const int64_t ids = 3 * static_cast<int64_t>(sizeof(int32_t)) * tokenizer.pipeline().word_bytes_bound(text_bytes);
  return align_up(StreamEncoder::memory_bound(tokenizer, text_bytes) + ids, 4096);
}

void book_encoding(PlanRequest& request, const Tokenizer& tokenizer, int64_t text_bytes) {
  request.prepare.least += encoding_bytes(tokenizer, text_bytes);
  request.prepare.most = request.prepare.least;
}

namespace {

// `mixed`: bytes of the casts of mixed precision. Where all values are narrow, half as many remain: updates, the loss.
int64_t casts_of(std::string_view precision, int64_t mixed) {
  if (precision == "32-true") return 0;
  return precision.ends_with("-true") ? mixed / 2 : mixed;
}

void book_programs(const ProgramBytes& bytes, int64_t count, int64_t layers, const PlanRequest& request,
                   ProcessBytes& process) {
  const bool adapters = weights_are(request, WeightForm::adapted);
  const bool fp32_products = precision_of(request) == "32-true" && matmul_precision_of(request) == "highest";
  const int64_t layer = bytes.layer + casts_of(precision_of(request), bytes.cast_layer);
  process.planner += align_up(count * layer_bytes(layers, request, layer, bytes.adapter_layer), 4096);
  process.kernels += count * bytes.kernels;
  if (fp32_products) process.kernels += count * (bytes.product_kernels + (adapters ? bytes.adapter_kernels : 0));
}

// A smaller prefill beside the largest one.
constexpr ProgramBytes kFurtherPrefill{
    kServingLayerBytes,     kServingAdapterBytes,           0,
    kFurtherLength.kernels, kFurtherLength.product_kernels, kFurtherLength.adapter_kernels};

// For a GPU's two page-locked batches for each program that reads the data: ids, labels, types and segments.
int64_t pinned_batch_bytes(const PlanRequest& request) {
  const int64_t programs = 2 * lengths_of(request);
  const int64_t pinned = pinned_micro_batch(request), rows = pinned > 0 ? pinned : request.global_batch;
  return 2 * programs * rows * request.seq_length * 4 * 4;
}

// Planning ends before the arena exists, and its heap is returned.
int64_t planning_bytes(const PlanRequest& request) {
  const bool tiers = request.host_budget_bytes > 0 || request.disk_budget_bytes > 0 || !request.facts.is_cpu();
  const PlanningBytes& bytes = tiers ? kPlanningTiers : kPlanning;
  const std::vector<Node>& nodes = request.forward.nodes;
  const auto products = std::count_if(
      nodes.begin(), nodes.end(), [](const Node& node) { return node.op && node.op->cost_class() == CostClass::gemm; });
  const int64_t adapted = weights_are(request, WeightForm::adapted) ? products : 0;
  return bytes.fixed + static_cast<int64_t>(nodes.size()) * bytes.node + adapted * bytes.adapters;
}

// What copies between tiers add to the tables of a training run, per layer and length: their instructions, and windows
// in the graph and the plan. Measured on 30 layers with everything on disk: 2 MiB, with adapters 8 to 9 MiB.
constexpr int64_t kCopyLayerBytes = 128 * 1024;
constexpr int64_t kCopyAdapterBytes = 224 * 1024;

int64_t copy_tables(const ModelSpec& spec, const PlanRequest& request) {
  return align_up(lengths_of(request) * layer_bytes(spec.layers, request, kCopyLayerBytes, kCopyAdapterBytes), 4096);
}

// Planning comes before the data is prepared. The tables of its plan are made while the graphs of one candidate exist,
// which is smaller than the largest.
void book_planning(PlanRequest& request) {
  const int64_t beyond_tables = planning_bytes(request) - host_bytes(request).planner;
  request.prepare.least = std::max(request.prepare.least, before_arena(request, beyond_tables));
  request.prepare.most = std::max(request.prepare.most, request.prepare.least);
}

// A GPU's kernels are prepared before the data: their page-locked batches exist by then.
void book_kernels_first(PlanRequest& request) {
  const int64_t batches = pinned_batch_bytes(request);
  const int64_t bytes = batches + align_up(batches / kPageTableRatio, 4096);
  request.prepare.least += bytes;
  request.prepare.most += bytes;
}

// The process's memory for all programs of a training run; those of further lengths are the step and evaluation.
ProcessBytes training_process(const TrainOptions& options, const ModelFiles& model, const PlanRequest& request) {
  ProcessBytes process = process_parts(model, request.facts, false);
  process.planner = 0;
  book_programs(kTraining, 1, model.spec.layers, request, process);
  process.data += BatchReader::memory_bytes(options.data.global_batch_size);
  if (!request.facts.is_cpu()) process.data += pinned_batch_bytes(request);
  if (asked_for(request, kLengthBuckets)) {
    process.data += SampleGroups::memory_bytes(options.data.global_batch_size);
    book_programs(kFurtherLength, lengths_of(request) - 1, model.spec.layers, request, process);
  }
  process.copies = disk_process_bytes(request.facts) + copy_tables(model.spec, request);
  process.caller = options.machine.caller_bytes;
  if (!options.model.adapter.empty()) process.data += adapter_bytes(options.model.adapter);
  return process;
}

}  // namespace

void book_process(PlanRequest& request, const ProcessBytes& process) {
  request.process = process;
  if (request.facts.is_cpu()) return;
  request.host_process = process;
  request.host_process.gpu =
      window_bytes(request.facts) + graph_bytes(request.facts) + request.profile.host_context_bytes;
  request.process = {};
  request.process.code = booked_context_bytes(request.profile);
  request.process.graphs = graph_bytes(request.facts);
}

void book_prefills(PlanRequest& request, const ModelFiles& model, int64_t further) {
  ProcessBytes& there = host_bytes(request);
  const int64_t tables = there.planner;
  book_programs(kFurtherPrefill, further, model.spec.layers, request, there);
  there.copies += read_tables(model, request, further);
  request.prepare.least += there.planner - tables;  // the plan exists before the arena does
  request.prepare.most += there.planner - tables;
}

void book_training(PlanRequest& request, const TrainOptions& options, const ModelFiles& model) {
  book_process(request, training_process(options, model, request));
  book_prepare(request, model);
  book_planning(request);
  if (!request.facts.is_cpu()) book_kernels_first(request);
}

}  // namespace headroom
