// What can be done: one rule per technique of docs/doctor_remedies.md.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "doctor/messages/growth.h"
#include "doctor/messages/message.h"
#include "doctor/messages/resources.h"
#include "doctor/model/estimate.h"
#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {

// What is known of the failure or the planned job.
struct Case {
  std::vector<Message> messages;
  std::optional<Job> job;
  bool job_is_quoted = false;  // by a text, which may leave out some of it
  std::optional<Job> quoted;   // what a text quotes of a job that it does not describe whole
  std::optional<ModelShape> shape;
  std::optional<Gpu> gpu;
  bool gpu_is_told = false;  // by a person's words alone
  std::optional<Estimate> estimate;
  std::optional<int64_t> capacity_bytes;  // of the device or host limit in question
  Growth growth;                          // of memory over time, where the log has samples
  Resources resources;                    // what schedulers, monitors and servers printed near the error
  Software software;                      // versions, if known
  std::optional<int64_t> micro_batch;     // stated by the user for a job that does not have it
  // The inputs as text in lower case: the log's start and end, and the configurations.
  std::string log_text, setup_text;
  std::optional<Story> story;  // what log_text tells, if it has been read (story_of)
};

struct Cause {
  std::string name;      // "fragmentation", "other_processes", "model_too_large", "batch_too_large", ...
  std::string evidence;  // with the figures
  double weight = 0;     // for ranking, highest first
};

// A field of Job by name ("micro_batch", "extras.liger") and its value as text.
using Changes = std::vector<std::pair<std::string, std::string>>;

struct Remedy {
  std::string name;  // technique
  std::string row;   // of the table in docs/doctor_remedies.md: "T06"
  std::string set;   // the option in the user's system and spelling, with its value
  std::vector<std::pair<std::string, std::string>> settings;  // the same as keys and values; empty when `set` is code
  bool available = true;               // false: the system does not have the option, and `set` says what to do instead
  std::optional<int64_t> saves_bytes;  // per device; absent when unknown
  std::optional<int64_t> host_bytes;   // additional host memory per process
  double slowdown = 1.0;
  std::string kind;    // exact, reassociating, data-order, lossy
  std::string effect;  // on arithmetic and accuracy, one line
  std::string effort;  // flag, config, code, install, hardware
  std::string needs;   // package and minimum version, GPU capability; empty when nothing
  std::vector<std::string> caveats;
  bool fits_alone = false;    // proven: the high end of the estimate, or the message's figures, are below the limit
  bool likely_alone = false;  // the likely figure is below the limit; true wherever fits_alone is
  bool one_try = false;       // may serve the failed request, but not the next one
  std::string why;
  bool tried = false;             // somebody did so already, by the log, and it did not help
  bool attempted = false;         // the same, or somebody went a part of the way
  double evidence = 0;            // how strongly the inputs support it, 0 to 1: see situations/situation.h
  double cost = 0;                // effort, time and accuracy as one number: see cost_of
  double extra_cost = 0;          // accuracy cost above that of the technique's record
  std::vector<Term> terms_after;  // the estimate with this remedy alone; empty when there is none
  // The change to the job and to the user's file. Sets of remedies are estimated with all their changes.
  Changes changes;
};

// A technique that was considered and does not help.
struct Refusal {
  std::string name;
  std::string why;
  bool unspelt = false;  // only because the system does not have an option for it
};

// A situation that the case shows (situations/situation.h).
struct SeenSituation {
  std::string name, cause, shown;   // shown: the evidence for it
  double evidence = 0;              // 0 to 1
  std::vector<std::string> advice;  // the option texts of its remedies, best first
};

struct Diagnosis {
  std::vector<Cause> causes;
  std::vector<SeenSituation> situations;          // the strongest evidence first
  std::vector<Remedy> remedies;                   // the cheapest that fits first
  std::vector<Refusal> refused;                   // techniques that do not apply, and why
  std::vector<std::string> notes;                 // outdated, misspelt or contradictory advice in the job; defaults
  std::vector<std::string> smallest_fitting_set;  // names of remedies; empty when none is proven to fit
  std::vector<std::string> likely_set;            // if none is proven: the smallest set that fits by the likely figure
  std::string surest;                             // if none is proven: saves most, with the same arithmetic
  Changes set_changes;                            // of the whole set
  std::optional<int64_t> bytes_after;             // estimate with the set applied
  std::optional<int64_t> high_after;              // its high end
  std::vector<Term> terms_after;                  // its terms
  std::optional<int64_t> need_bytes;              // the job's need at its peak, if known
  std::optional<int64_t> limit_bytes;             // what the job may use: the device minus what others hold
  bool host = false;                              // host memory is in question
  bool language_model = false;                    // the job is one, as far as the inputs show
  std::optional<bool> fits;                       // the unchanged job fits; absent when neither is proven
  std::string doubt;                              // what is missing for a proof, and how to get it

  // The proposed set: the proven one, else the likely one.
  const std::vector<std::string>& proposed_set() const {
    return smallest_fitting_set.empty() ? likely_set : smallest_fitting_set;
  }
};

using Estimator = std::function<Estimate(const Job&, const ModelShape&, const std::optional<Gpu>&)>;

// Pure functions: no file, no device, no network. The first one uses the memory model, estimate().
Diagnosis diagnose(const Case& incident);
Diagnosis diagnose(const Case& incident, const Estimator& estimator);

}  // namespace headroom::doctor
