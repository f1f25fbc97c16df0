// What a run's process holds outside its arena, and what preparing its data takes: booked in a planning request.
// docs/process_memory.md.
#pragma once

#include <filesystem>

#include "planner/request.h"
#include "tokenizer/tokenizer.h"
#include "train/model_files.h"
#include "train/options.h"

namespace headroom {

// Binary, libraries' touched pages, allocator: what every phase of a run counts at least, before a kernel has run.
inline constexpr int64_t kPrepareCodeBytes = int64_t{14} << 20;

// Parts of the process outside the arena that do not depend on the plan (page tables are added by the planner).
// `tokenizer_stays` when the tokenizer is held while the arena is (generation).
ProcessBytes process_parts(const ModelFiles& model, const DeviceFacts& facts, bool tokenizer_stays);

// Further bytes that an adapter's files take while they are open.
int64_t adapter_bytes(const std::filesystem::path& directory);

// Books `process` where it lies: beside the arena on the CPU; on the host, and the device's context beside the arena,
// for a device with its own memory. The request has its facts and profile.
void book_process(PlanRequest& request, const ProcessBytes& process);

// Books all of a training run: its process, and what preparing its data takes. The request has everything else.
void book_training(PlanRequest& request, const TrainOptions& options, const ModelFiles& model);

// Books what preparing data for a request needs, which has its process, length and packing: whatever data it is
// (docs/process_memory.md).
void book_prepare(PlanRequest& request, const ModelFiles& model);
// The same of `generate`, before the tokenizer is loaded: a prompt of so many bytes of text, which is rendered with
// `chat_bytes` of heap where it is a chat (0: it is not).
void book_prompt(PlanRequest& request, const ModelFiles& model, int64_t text_bytes, int64_t chat_bytes);
// Books what a server's process holds beside a generation's: `bytes` of the server itself, and the instruction tables
// of so many programs, with `slots` of adapters or without.
void book_server(PlanRequest& request, const ModelFiles& model, int64_t programs, int64_t bytes, bool slots);
// The bytes of a file in the model's folder; 0 where there is none. Throws Error(run) where it cannot be asked for.
int64_t file_bytes(const ModelFiles& model, const char* name);
// Adds what encoding so many bytes of text takes, with a tokenizer that is there.
void book_encoding(PlanRequest& request, const Tokenizer& tokenizer, int64_t text_bytes);

}  // namespace headroom
