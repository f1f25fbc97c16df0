/// @file
/// Answers about out-of-memory errors of PyTorch, Hugging Face, LitGPT, Oumi, DeepSpeed, vLLM and others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headroom/engine.h"

namespace headroom::api {

/// What doctor is asked. Something of `text`, `files`, `configs` and `command` is given; the rest narrows the answer.
struct Question {
  std::string text;                   ///< an error message or log
  std::vector<std::string> files;     ///< logs, configurations, snapshots of torch's allocator
  std::vector<std::string> configs;   ///< configurations for sure
  std::vector<std::string> command;   ///< a command line of another system, in words
  std::string model;                  ///< config.json, its directory, or a published name
  std::string parameters;             ///< "7B"
  std::string gpu;                    ///< "a100-40gb", "4090", or a size as "24GiB"
  std::int64_t gpus = 0;              ///< 0: not known
  std::int64_t micro_batch_size = 0;  ///< sequences at once on a GPU; 0: not known
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
