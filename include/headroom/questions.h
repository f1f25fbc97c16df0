/// @file
/// Questions to ask before a training run; docs/questions.md lists them and the members of each answer.
#pragma once

#include <string>

#include "headroom/engine.h"

namespace headroom::api {

/// Compares training and serving of all models below `directory` (folders with a config.json, at any depth) within the
/// option "memory"; the other options are those of Session::plan() and apply to every model. JSON: "models", best
/// first. The row of a model that cannot be read or planned gives the reason. Takes a second or two per model. Throws
/// Error (usage) if the directory cannot be read or holds no model. Thread-safe.
Answer suggest_models(const std::string& directory, const Options& options = {});

/// Compares two plans: files as Plan::json() gives them, or plan.json of a training's output directory. JSON: bytes by
/// class, seconds, and the techniques and tensors that make the difference. Throws Error (usage, format) for a file
/// that is not a plan, and for a plan that does not fit. Thread-safe.
Answer compare_plans(const std::string& plan_a, const std::string& plan_b);

}  // namespace headroom::api
