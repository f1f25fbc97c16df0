// A training run as requested through the public API.
#pragma once

#include <string>

#include "api/parser.h"
#include "arguments/train_options.h"
#include "engine/session_share.h"
#include "engine/technique_step.h"
#include "train/options.h"
#include "weights/model_files.h"

namespace headroom::api {

// Whether the training runs on this machine or is only planned, possibly for the device of a named profile.
enum class ForWhat { plan, run };

// The options of a model's session and of a call, combined, and the command line that is equivalent to them.
class AskedTraining {
 public:
  // Throws headroom::Error(usage).
  AskedTraining(const std::string& model, const Options& shared, const Options& own, const SessionShare& share,
                ForWhat what);

  const TrainOptions& options() const { return options_; }
  ModelFiles model() const { return open_model(options_.model.path); }
  std::string command(const OptionValues& changes) const;

 private:
  Parser<TrainArguments> parser_;
  TrainOptions options_;
};

}  // namespace headroom::api
