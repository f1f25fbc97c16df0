// What doctor answers with, whole; the screen, JSON, HTML and the bundle are views of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/remedies/remedy.h"
#include "doctor/remedies/which_gpu.h"
#include "doctor/snapshot/snapshot_analysis.h"

namespace headroom::doctor {

// What headroom itself would need for the same job.
struct HeadroomAnswer {
  std::string command;
  std::optional<int64_t> minimum_bytes;  // absent where the model's config.json is not at hand
  std::string note;                      // where it is not quite the same job
};

// A fact that nobody gave, and that decides what is said.
struct Question {
  std::string text;     // "Which GPU, or how much memory has it?"
  std::string option;   // that gives it: "--gpu"
  std::string example;  // of its value
  bool first = false;   // an answer would change the first remedy, not only whether it fits
};

struct Report {
  Case incident;
  Diagnosis diagnosis;
  HeadroomAnswer headroom;
  std::string system;                // "TRL", for people; empty when unknown
  std::vector<std::string> sources;  // what was read, one line each
  std::vector<std::string> notes;    // on reading it
  std::vector<GpuChoice> gpus;       // --which-gpu: the best first
  std::vector<SnapshotAnalysis> snapshots;
  std::string measured;              // what a probe of two batch sizes says; empty without one
  std::string patch;                 // the smallest set as a diff of the user's file; empty when there is none
  std::vector<std::string> by_hand;  // of that set: what the file cannot express
  std::string ask;                   // the command to run again where the model is unknown; empty otherwise
  std::string give;                  // an option that the log itself asks for: "--config zero3.yaml: ..."
  std::vector<Question> questions;   // the most deciding first
  bool looked_for_message = false;   // a log was read
};

}  // namespace headroom::doctor
