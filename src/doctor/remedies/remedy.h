// What could be done: one rule per technique of docs/doctor_remedies.md.
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

namespace headroom::doctor {

// What a person brought.
struct Case {
  std::vector<Message> messages;
  std::optional<Job> job;
  std::optional<ModelShape> shape;
  std::optional<Gpu> gpu;
  std::optional<Estimate> estimate;
  std::optional<int64_t> capacity_bytes;  // of the device (or host limit) in question
  Growth growth;                          // of memory over time, where the log has samples
  Resources resources;                    // what schedulers, monitors and servers printed beside the error
  Software software;                      // versions, where known
  std::optional<int64_t> micro_batch;     // where no job states it: what the person knows
  // What was brought, as text in lower case: the log's first and last pieces, and the configurations.
  std::string log_text, setup_text;
};

struct Cause {
  std::string name;      // "fragmentation", "other_processes", "model_too_large", "batch_too_large", ...
  std::string evidence;  // with the figures
  double weight = 0;     // for ranking, highest first
};

// A field of Job by its name ("micro_batch", "extras.liger") and its value as text.
using Changes = std::vector<std::pair<std::string, std::string>>;

struct Remedy {
  std::string name;  // technique
  std::string row;   // of the table in docs/doctor_remedies.md: "T06"
  std::string set;   // the option in the user's own system and spelling, with its value
  std::vector<std::pair<std::string, std::string>> settings;  // the same as keys and values; empty where `set` is code
  bool available = true;               // false: the system has no such option, and `set` says what to do instead
  std::optional<int64_t> saves_bytes;  // per device; absent when nothing allows to tell
  std::optional<int64_t> host_bytes;   // more needed on the host per process
  double slowdown = 1.0;
  std::string kind;    // exact, reassociating, data-order, lossy
  std::string effect;  // on arithmetic and accuracy, one line
  std::string effort;  // flag, config, code, install, hardware
  std::string needs;   // package and minimum version, GPU capability; empty when nothing
  std::vector<std::string> caveats;
  bool fits_alone = false;  // proven: the upper end of the estimate, or the message's own figures, are below the limit
  bool likely_alone = false;  // its likely figure is; true wherever fits_alone is
  bool one_try = false;       // may serve this one request, but not the next
  std::string why;
  double evidence = 0;            // how strongly what was read speaks for it, 0 to 1: see situations/situation.h
  double cost = 0;                // effort, time and accuracy in one figure: see cost_of
  double extra_cost = 0;          // in accuracy, above what the technique's record says
  std::vector<Term> terms_after;  // of the estimate with this remedy alone; empty when there is none
  // The change to the job, so that sets of remedies can be estimated together, and to the user's file.
  Changes changes;
};

// A technique that was considered and does not help here.
struct Refusal {
  std::string name;
  std::string why;
  bool unspelt = false;  // only that the system has no option for it
};

// What people run into besides a job that is too large (situations/situation.h).
struct SeenSituation {
  std::string name, cause, shown;   // shown: what speaks for it
  double evidence = 0;              // 0 to 1
  std::vector<std::string> advice;  // as the remedies are spelt, best first
};

struct Diagnosis {
  std::vector<Cause> causes;
  std::vector<SeenSituation> situations;          // the heaviest evidence first
  std::vector<Remedy> remedies;                   // cheapest that fits first
  std::vector<Refusal> refused;                   // what does not apply, and why
  std::vector<std::string> notes;                 // stale or misspelt advice in the job, opposite advice, defaults
  std::vector<std::string> smallest_fitting_set;  // remedy names; empty when none is proven to fit
  std::vector<std::string> likely_set;            // where none is proven: the smallest that fits by the likely figure
  std::string surest;                             // where none is proven: what saves most and keeps the arithmetic
  Changes set_changes;                            // of the set together
  std::optional<int64_t> bytes_after;             // estimate with the set applied
  std::optional<int64_t> high_after;              // its upper end
  std::vector<Term> terms_after;                  // its terms
  std::optional<int64_t> need_bytes;              // what the job wants at its peak, as far as is known
  std::optional<int64_t> limit_bytes;             // what it may have: the device less what others hold
  bool host = false;                              // the memory in question is the host's
  std::optional<bool> fits;                       // as it stands; absent where that is not proven either way
  std::string doubt;                              // what would have to be known for a proof, and what gives it

  // What is proposed: the set that is proven, else the likely one.
  const std::vector<std::string>& proposed_set() const {
    return smallest_fitting_set.empty() ? likely_set : smallest_fitting_set;
  }
};

using Estimator = std::function<Estimate(const Job&, const ModelShape&, const std::optional<Gpu>&)>;

// Pure functions: no file, no device, no network. The first uses the memory model, estimate().
Diagnosis diagnose(const Case& incident);
Diagnosis diagnose(const Case& incident, const Estimator& estimator);

}  // namespace headroom::doctor
