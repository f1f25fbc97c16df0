/// @file
/// Answers about out-of-memory errors of PyTorch, Hugging Face, LitGPT, Oumi, DeepSpeed, vLLM and others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headroom/engine.h"

namespace headroom::api {

/// A question to doctor. At least one of `text`, `files`, `configs` and `command` is set; the other members narrow the
/// answer.
struct Question {
  std::string text;                   ///< an error message or log
  std::vector<std::string> files;     ///< logs, configurations, snapshots of torch's allocator
  std::vector<std::string> configs;   ///< files that must be configurations
  std::vector<std::string> command;   ///< another system's command line, split into words
  std::string model;                  ///< config.json, its directory, or a published name
  std::string parameters;             ///< "7B"
  std::string gpu;                    ///< "a100-40gb", "4090", or a size as "24GiB"
  std::int64_t gpus = 0;              ///< 0: not known
  std::int64_t micro_batch_size = 0;  ///< sequences processed at once on a GPU; 0: not known
  std::int64_t max_seq_length = 0;    ///< tokens; 0: not known
};

/// doctor's answer.
struct Diagnosis {
  std::string screen;   ///< at most 24 lines: what happened, why, what to do, whether it then fits
  std::string details;  ///< every cause, term and remedy
  std::string json;     ///< one object (docs/doctor.md)
};

/// Reads what the question names, and nothing else. Throws Error (usage, format). Thread-safe.
Diagnosis explain(const Question& question);

}  // namespace headroom::api
