// The whole of doctor's answer; the screen, JSON, HTML and the bundle are views of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/remedies/remedy.h"
#include "doctor/remedies/which_gpu.h"
#include "doctor/snapshot/snapshot_analysis.h"

namespace headroom::doctor {

// What headroom itself needs for the same job.
struct HeadroomAnswer {
  std::string command;
  std::optional<int64_t> minimum_bytes;  // absent when the model's config.json is not available
  std::string note;                      // how the job differs, if it is not quite the same
};

// A missing fact that changes the answer.
struct Question {
  std::string text;     // "Which GPU, or how much memory does it have?"
  std::string option;   // the option that states it: "--gpu"
  std::string example;  // an example of its value
  bool first = false;   // an answer would change the first remedy, not only whether the job fits
};

struct Report {
  Case incident;
  Diagnosis diagnosis;
  HeadroomAnswer headroom;
  std::string system;                // "TRL", for display; empty when unknown
  std::vector<std::string> sources;  // what was read, one line each
  std::vector<std::string> notes;    // on reading the inputs
  std::vector<std::string> quoted;   // what a text quotes: "the YAML in the text (line 4): micro_batch_size 2"
  std::vector<GpuChoice> gpus;       // --which-gpu: the best first
  std::vector<SnapshotAnalysis> snapshots;
  std::string measured;              // what a probe of two batch sizes shows; empty without a probe
  std::string patch;                 // the smallest set as a diff of the user's file; empty when there is none
  std::vector<std::string> by_hand;  // remedies of that set that the file cannot express
  std::string ask;                   // the command to run again when the model is unknown; empty otherwise
  std::string give;                  // an option for a file that the log names: "--config zero3.yaml: ..."
  std::vector<Question> questions;   // the most important first
  bool looked_for_message = false;   // a log was read
};

}  // namespace headroom::doctor
