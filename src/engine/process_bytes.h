// The memory of a run's process outside its arena, and for preparing its data, as booked in a planning request.
// docs/process_memory.md.
#pragma once

#include <filesystem>

#include "planner/request.h"
#include "tokenizer/tokenizer.h"
#include "weights/model_files.h"

namespace headroom {

struct TrainOptions;

// Binary, libraries' touched pages, allocator: the least that every phase of a run counts, before a kernel has run.
inline constexpr int64_t kPrepareCodeBytes = int64_t{14} << 20;

// Parts of the process outside the arena that do not depend on the plan (the planner adds page tables).
// `tokenizer_stays`: the tokenizer is held together with the arena (generation).
ProcessBytes process_parts(const ModelFiles& model, const DeviceFacts& facts, bool tokenizer_stays);

// Further bytes of an adapter's files while they are open.
int64_t adapter_bytes(const std::filesystem::path& directory);

// Books `process`: with the arena on the CPU; for a device with its own memory on the host, and the device's context
// with the arena. The request has its facts and profile.
void book_process(PlanRequest& request, const ProcessBytes& process);

// Books the whole process of a training run, with preparing its data. The request has everything else.
void book_training(PlanRequest& request, const TrainOptions& options, const ModelFiles& model);

// Books preparing data for a request, which has its process, length and packing, for any data (docs/process_memory.md).
void book_prepare(PlanRequest& request, const ModelFiles& model);
// The same for `generate`, before the tokenizer is loaded: a prompt of so many bytes of text, which is rendered with
// `chat_bytes` of heap if it is a chat (0: it is not).
void book_prompt(PlanRequest& request, const ModelFiles& model, int64_t text_bytes, int64_t chat_bytes);
// Buffers, threads and tables of the copies with which so many programs of a model that is not trained read lower
// tiers.
int64_t reading_bytes(const ModelFiles& model, const PlanRequest& request, int64_t programs);
// Books a server's process in addition to a generation's: `bytes` of the server itself, and the instruction tables of
// so many programs, with `slots` of adapters or without.
void book_server(PlanRequest& request, const ModelFiles& model, int64_t programs, int64_t bytes, bool slots);
// Adds the memory for encoding so many bytes of text with a loaded tokenizer.
void book_encoding(PlanRequest& request, const Tokenizer& tokenizer, int64_t text_bytes);
// Adds the tables and kernels of so many further prefill programs of a generation.
void book_prefills(PlanRequest& request, const ModelFiles& model, int64_t further);

// The parts of book_prompt() and book_encoding() that a prompt takes beside a loaded tokenizer.
int64_t prompt_bytes(const ModelFiles& model, int64_t text_bytes, int64_t chat_bytes);
int64_t encoding_bytes(const Tokenizer& tokenizer, int64_t text_bytes);

}  // namespace headroom
