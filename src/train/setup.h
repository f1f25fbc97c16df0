// From options and model files to a planning request: shared by `plan`, `train`, `evaluate` and `generate`.
#pragma once

#include <filesystem>
#include <string>

#include "formats/hf_config.h"
#include "models/model_spec.h"
#include "planner/request.h"
#include "tokenizer/tokenizer.h"
#include "train/options.h"

namespace headroom {

// A model as files: its directory (empty for a bare config.json), config and spec.
struct ModelFiles {
  std::filesystem::path directory;
  HfConfig config;
  ModelSpec spec;
};

// Reads config.json of a directory, or a bare config.json. Throws Error(usage) for a missing path (a Hub id gets the
// remedy), Error(format) for what is inside.
ModelFiles open_model(const std::filesystem::path& model);

// Refuses quantised checkpoints by name.
void refuse_quantized(const ModelFiles& model, std::string_view purpose);

// Parts of the process outside the arena that do not depend on the plan (page tables are added by the planner).
// `tokenizer_stays` when the tokenizer is held while the arena is (generation).
ProcessBytes process_parts(const ModelFiles& model, const DeviceFacts& facts, bool tokenizer_stays);

// The heap that rendering conversations may take in a run of this plan.
int64_t chat_bytes_of(const Plan& plan);
// What an adapter's files take of memory besides, while they are open.
int64_t adapter_bytes(const std::filesystem::path& directory);

// What the header of a file of a run's own checkpoint has at most: a longer one was not written by it, and its tables
// are not booked.
int64_t most_own_header_bytes(const ModelSpec& spec);

// Books `process` where it lies: beside the arena on the CPU; on the host, and the device's context beside the arena,
// for a device with its own memory. The request has its facts and profile.
void book_process(PlanRequest& request, const ProcessBytes& process);

// Books what preparing data for a request needs, which has its process, length and packing: whatever data it is
// (docs/process_memory.md).
void book_prepare(PlanRequest& request, const ModelFiles& model);
// The same of `generate`, before the tokenizer is loaded: a prompt of so many bytes of text, which is rendered with
// `chat_bytes` of heap where it is a chat (0: it is none).
void book_prompt(PlanRequest& request, const ModelFiles& model, int64_t text_bytes, int64_t chat_bytes);
// Adds what encoding so many bytes of text takes, with a tokenizer that is there.
void book_encoding(PlanRequest& request, const Tokenizer& tokenizer, int64_t text_bytes);

// The device facts of the options, and their profile. A named profile's own facts decide, so that a plan is the same
// wherever it is made; without one, those of this machine. Of its facts only the instruction set may be lowered, to
// this machine's, for a run on the CPU (options.runs_here).
DeviceFacts device_facts(const TrainOptions& options, Profile& profile);

// Where a run on this CPU differs from what its named profile describes: a lower instruction set, for which the plan is
// made anew, or another number of threads than this process could use. A line with the remedy; empty when all is alike.
std::string profile_remark(const TrainOptions& options, const PlanRequest& request);

// The request of a training run. Throws Error(usage | format).
PlanRequest training_request(const TrainOptions& options, const ModelFiles& model);

// The sequence length of a run: the option, else min(model, 512). Throws Error(usage) when the model is shorter.
int64_t sequence_length(const TrainOptions& options, const ModelSpec& spec);

}  // namespace headroom
