// A training as a caller of the public API asks for it.
#pragma once

#include <string>

#include "api/parser.h"
#include "arguments/train_options.h"
#include "engine/session_share.h"
#include "engine/technique_step.h"
#include "train/model_files.h"
#include "train/options.h"

namespace headroom::api {

// Whether it runs here, or is only planned: then for the device that a named profile describes.
enum class ForWhat { plan, run };

// The options that a model's session and a call give, and the command line that says the same.
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
